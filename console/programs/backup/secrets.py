"""The secrets that what is backed up rests on: kept with it, or named loudly where they are not.

Without Django's key no second factor of the backup is right any more, and no session or link.
Without the cell's secret no broker takes its own service's word.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from console.programs.backup.errors import BackupError
from console.programs.backup.manifest import SecretFacts, describe, sync
from console.settings.config import Config

SECRET_KEY = "secret_key"  # noqa: S105 (a name)
CELL_SECRET = "cell_secret"  # noqa: S105 (a name)


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret by name. `file`: where it is kept, none where the settings themselves say it."""

    name: str
    file: Path | None
    value: str

    @property
    def fingerprint(self) -> str:
        """Tells it from another, and nothing else of it: of a text that nobody can guess."""
        return hashlib.sha256(f"freshet {self.name}\0{self.value}".encode()).hexdigest()[:16]


def secrets_of(config: Config) -> list[Secret]:
    """The secrets of a service; the value of one that is not there is empty."""
    return [
        Secret(SECRET_KEY, None, config.secret_key)
        if config.secret_key
        else _in_file(SECRET_KEY, config.secret_key_file),
        _in_file(CELL_SECRET, config.cell.secret),
    ]


def copy_secrets(config: Config, folder: Path, *, with_files: bool) -> tuple[SecretFacts, ...]:
    """Copies those that lie in files, mode 0600, unless they are to be left out."""
    return tuple(_copied(secret, folder, with_files) for secret in secrets_of(config))


def differing(config: Config, facts: tuple[SecretFacts, ...]) -> list[str]:
    """Names of secrets that will not be those of the backup, as it has no copy of them."""
    present = {secret.name: secret for secret in secrets_of(config)}
    return [
        fact.name
        for fact in facts
        if _is_kept_elsewhere(fact, present[fact.name])
        and fact.fingerprint != present[fact.name].fingerprint
    ]


def put_secrets(
    config: Config, folder: Path, facts: tuple[SecretFacts, ...], stamp: str
) -> list[Path]:
    """Puts the backup's secrets where they belong; gives where other ones are kept."""
    kept = []
    present = {secret.name: secret for secret in secrets_of(config)}
    for fact in facts:
        secret = present[fact.name]
        if fact.copy is None or secret.file is None or fact.fingerprint == secret.fingerprint:
            continue
        if secret.file.exists():
            before = secret.file.with_name(f"{secret.file.name}.before-{stamp}")
            secret.file.rename(before)
            kept.append(before)
        secret.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(secret.file, (folder / fact.copy.name).read_bytes())
    return kept


def _is_kept_elsewhere(facts: SecretFacts, present: Secret) -> bool:
    return facts.copy is None or present.file is None


def _in_file(name: str, file: Path) -> Secret:
    try:
        return Secret(name, file, file.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        return Secret(name, file, "")
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"{file} cannot be read: {error}.") from error


def _copied(secret: Secret, folder: Path, with_files: bool) -> SecretFacts:
    if secret.file is None or not secret.value or not with_files:
        return SecretFacts(secret.name, None, secret.fingerprint)
    target = folder / secret.name
    _write(target, f"{secret.value}\n".encode("ascii"))
    return SecretFacts(secret.name, describe(target), secret.fingerprint)


def _write(file: Path, content: bytes) -> None:
    """Whole or not at all, for the owner only."""
    draft = file.with_name(f".{file.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    sync(draft)
    draft.rename(file)
    sync(file.parent)
