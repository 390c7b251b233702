"""Settings: reading the file, overrides, and TOML from Python values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from brokers import _core
from brokers.errors import ConfigError


def load_settings(
    path: str | Path,
    overrides: Sequence[str] = (),
    resolve: Callable[[str, Sequence[str]], str] = _core.resolve_settings,
) -> str:
    """Reads a settings file and gives all settings as TOML, overrides and defaults filled in.

    `overrides` are `section.setting=value`; `resolve` is of the kind of process. Raises
    `ConfigError`, which names file, line and key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path}: {error}"
        raise ConfigError(message) from error
    try:
        return resolve(text, list(overrides))
    except ConfigError as error:
        message = f"{path}: {error}"
        raise ConfigError(message) from error


def overrides_of(sections: Mapping[str, Mapping[str, object]]) -> list[str]:
    """`section.setting=value` for each setting of each section."""
    return [
        f"{section}.{name}={toml_value(value)}"
        for section, settings in sections.items()
        for name, value in settings.items()
    ]


def toml_value(value: object) -> str:
    """A text, number, truth value, list or mapping of these, as a TOML value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str() | Path():
            return _toml_text(str(value))
        case Mapping():
            inner = ", ".join(f"{name} = {toml_value(each)}" for name, each in value.items())
            return f"{{ {inner} }}"
        case Sequence():
            return f"[{', '.join(toml_value(each) for each in value)}]"
        case _:
            message = f"no setting takes a {type(value).__name__}"
            raise ConfigError(message)


def _toml_text(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\"}
    plain = (
        f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else escapes.get(c, c) for c in text
    )
    return f'"{"".join(plain)}"'
