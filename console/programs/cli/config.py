"""Profiles: the address of a Freshet with an API key.

They are kept in a file for its owner only.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from console.programs.cli.errors import CommandError

DEFAULT_URL = "http://localhost:8080"
DEFAULT_PROFILE = "default"


@dataclass(frozen=True, slots=True)
class Profile:
    """The address of a service and the API key of an organization.

    `key_id`: the id of a key that `login` or `signup` made, which `logout` revokes; else empty.
    """

    url: str = DEFAULT_URL
    api_key: str = ""
    key_id: str = ""
    # The id of the cluster that commands mean when they name none.
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class CliConfig:
    """All profiles by name, and the name of the one in use."""

    current: str = DEFAULT_PROFILE
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def with_profile(self, name: str, profile: Profile) -> CliConfig:
        """Returns a copy with a new or changed profile."""
        return replace(self, profiles={**self.profiles, name: profile})

    def without(self, name: str) -> CliConfig:
        """Returns a copy without a profile.

        Where it was in use, another one is, if there is one.
        """
        left = {key: value for key, value in self.profiles.items() if key != name}
        current = next(iter(left), DEFAULT_PROFILE) if name == self.current else self.current
        return CliConfig(current, left)


def config_path(environment: Mapping[str, str]) -> Path:
    """Returns the path of the file: FRESHET_CONFIG, or `freshet/config.json` in the user's
    configuration folder."""
    if chosen := environment.get("FRESHET_CONFIG"):
        return Path(chosen)
    folder = environment.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "freshet" / "config.json"


def read_config(path: Path) -> CliConfig:
    """Returns the profiles in a file; none where it does not exist.

    Raises `CommandError` where it cannot be read or understood, or where others can read it, as its
    keys are not secret any more then.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read()
    except FileNotFoundError:
        return CliConfig()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    if mode & 0o077:
        raise CommandError(
            f"{path} holds API keys, and others can read it.",
            advice=f"Close it with `chmod 600 {path}`, and rotate keys that others may know.",
        )
    try:
        return _decode_config(json.loads(content))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CommandError(
            f"{path} is no configuration of freshet.",
            advice="Remove it, and sign in again with `freshet login`.",
        ) from error


def _decode_config(content: Any) -> CliConfig:
    known = Profile.__dataclass_fields__
    profiles = {
        str(name): Profile(**{key: str(value) for key, value in members.items() if key in known})
        for name, members in content["profiles"].items()
    }
    return CliConfig(str(content["current"]), profiles)


def write_config(path: Path, config: CliConfig) -> None:
    """Replaces the file in one step; only its owner can read it at any moment.

    Raises `CommandError` where it cannot be written.
    """
    content = {
        "current": config.current,
        "profiles": {name: asdict(profile) for name, profile in config.profiles.items()},
    }
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file, indent=2)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from error
