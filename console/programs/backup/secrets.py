"""The secrets without which a backup is of little use: copied into it, or left out on request.

Without Django's secret key the second factors, sessions and links of the backup are not valid.
Without the cell's secret the brokers refuse the control plane and the gateway.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from console.programs.backup.errors import BackupError
from console.programs.backup.manifest import SecretFacts, describe_file, sync_path
from console.settings.config import Config

SECRET_KEY = "secret_key"  # noqa: S105 (a name)
CELL_SECRET = "cell_secret"  # noqa: S105 (a name)


@dataclass(frozen=True, slots=True)
class ServiceSecret:
    """A secret of the service.

    `file`: where it is kept; None where the settings hold it. `value`: empty where it is missing.
    """

    name: str
    file: Path | None
    value: str

    @property
    def fingerprint(self) -> str:
        """The beginning of a SHA-256 of the value, to compare secrets without showing them.

        The values are random texts, so nobody can find one by trying.
        """
        return hashlib.sha256(f"freshet {self.name}\0{self.value}".encode()).hexdigest()[:16]


def secrets_of(config: Config) -> list[ServiceSecret]:
    """Returns the secrets of a service. Raises `BackupError` where a file cannot be read."""
    return [
        ServiceSecret(SECRET_KEY, None, config.secret_key)
        if config.secret_key
        else _in_file(SECRET_KEY, config.secret_key_file),
        _in_file(CELL_SECRET, config.cell.secret),
    ]


def copy_secrets(config: Config, folder: Path, *, with_files: bool) -> tuple[SecretFacts, ...]:
    """Copies the secrets that are in files into the backup, mode 0600, where `with_files`.

    Returns the facts of all secrets, those without a copy too.
    """
    return tuple(_copy_secret(secret, folder, with_files) for secret in secrets_of(config))


def differing_secrets(config: Config, facts: tuple[SecretFacts, ...]) -> list[str]:
    """Returns the names of secrets that a restore cannot put back and that differ from the
    backup's.

    A secret cannot be put back where the backup has no copy, or where the settings hold it.
    """
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
    """Writes the backup's secrets into their files; returns the files that keep the former ones."""
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
        _write_secret(secret.file, (folder / fact.copy.name).read_bytes())
    return kept


def _is_kept_elsewhere(facts: SecretFacts, present: ServiceSecret) -> bool:
    return facts.copy is None or present.file is None


def _in_file(name: str, file: Path) -> ServiceSecret:
    try:
        return ServiceSecret(name, file, file.read_text(encoding="ascii").strip())
    except FileNotFoundError:
        return ServiceSecret(name, file, "")
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"{file} cannot be read: {error}.") from error


def _copy_secret(secret: ServiceSecret, folder: Path, with_files: bool) -> SecretFacts:
    if secret.file is None or not secret.value or not with_files:
        return SecretFacts(secret.name, None, secret.fingerprint)
    target = folder / secret.name
    _write_secret(target, f"{secret.value}\n".encode("ascii"))
    return SecretFacts(secret.name, describe_file(target), secret.fingerprint)


def _write_secret(file: Path, content: bytes) -> None:
    """Replaces a file in one step, so that it is never half written; mode 0600."""
    draft = file.with_name(f".{file.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    sync_path(draft)
    draft.rename(file)
    sync_path(file.parent)
