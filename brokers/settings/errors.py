"""What is wrong with settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.errors import ConfigError


class SettingsError(ConfigError):
    """Settings that make no sense. The text names the setting, what it is and what is wanted.

    `setting` is its name, such as `web.port`, where the error is of one.
    """

    def __init__(self, message: str, setting: str = "") -> None:
        super().__init__(message)
        self.setting = setting


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Has an error of the settings file at `path` name it. Raises `SettingsError`."""
    try:
        yield
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        message = f"{path}: {error}"
        raise SettingsError(message) from error
