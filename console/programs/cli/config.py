"""Profiles: which Freshet, and with which API key. Kept in a file that only its owner reads."""

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
    """One Freshet and one organisation's key. `key_id`: of a key that `login` made itself."""

    url: str = DEFAULT_URL
    api_key: str = ""
    key_id: str = ""
    # The one that commands mean that name none, by its id.
    cluster: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """All profiles, and the one in use."""

    current: str = DEFAULT_PROFILE
    profiles: Mapping[str, Profile] = field(default_factory=dict)

    def with_profile(self, name: str, profile: Profile) -> Config:
        """The same with a profile that is new or changed."""
        return replace(self, profiles={**self.profiles, name: profile})

    def without(self, name: str) -> Config:
        """The same without a profile. Another one is in use then, if there is one."""
        left = {key: value for key, value in self.profiles.items() if key != name}
        current = next(iter(left), DEFAULT_PROFILE) if name == self.current else self.current
        return Config(current, left)


def config_path(environment: Mapping[str, str]) -> Path:
    """Where the file is: FRESHET_CONFIG, or `freshet/config.json` in the user's configuration."""
    if chosen := environment.get("FRESHET_CONFIG"):
        return Path(chosen)
    folder = environment.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "freshet" / "config.json"


def read_config(path: Path) -> Config:
    """The file's content; nothing where it is absent. Raises CommandError for a bad one.

    One that others can read is refused: the keys in it are no secret any more.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            content = file.read()
    except FileNotFoundError:
        return Config()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    if mode & 0o077:
        raise CommandError(
            f"{path} holds API keys, and others may read it.",
            advice=f"Close it with `chmod 600 {path}`, and replace its keys if they may be known.",
        )
    try:
        return _decode(json.loads(content))
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise CommandError(
            f"{path} is no configuration of freshet.", advice="Remove it, and `freshet login` anew."
        ) from error


def _decode(content: Any) -> Config:
    known = Profile.__dataclass_fields__
    profiles = {
        str(name): Profile(**{key: str(value) for key, value in given.items() if key in known})
        for name, given in content["profiles"].items()
    }
    return Config(str(content["current"]), profiles)


def write_config(path: Path, config: Config) -> None:
    """Replaces the file in one step; nobody but its owner may read it at any moment."""
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
