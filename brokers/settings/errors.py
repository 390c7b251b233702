"""Errors of settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from brokers.errors import ConfigError


class SettingsError(ConfigError):
    """Settings that are refused. The text names the setting, its value and the values it may have.

    `setting` is the setting's name, such as `web.port`; empty where the error is of none.
    """

    def __init__(self, message: str, setting: str = "") -> None:
        super().__init__(message)
        self.setting = setting


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Puts the name of the settings file at `path` into errors. Raises `SettingsError`."""
    try:
        yield
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        message = f"{path}: {error}"
        raise SettingsError(message) from error
