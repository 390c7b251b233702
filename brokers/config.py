"""Reading a settings file of a broker or a gateway. The extension knows the settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from brokers import _core
from brokers.settings.errors import naming


def load_settings(
    path: str | Path,
    overrides: Sequence[str] = (),
    resolve: Callable[[str, Sequence[str]], str] = _core.resolve_settings,
) -> str:
    """Reads a settings file and returns all settings as TOML, overrides and defaults filled in.

    `overrides` are `section.setting=value`; `resolve` is the extension's function for a broker or
    a gateway. Raises `ConfigError`, which names file, line and key.
    """
    with naming(path):
        return resolve(Path(path).read_text(encoding="utf-8"), list(overrides))
