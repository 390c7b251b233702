"""Writing settings as TOML."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from brokers.settings.errors import SettingsError
from brokers.settings.fields import settings_of

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def settings_toml(settings: object) -> str:
    """A dataclass of settings and sections as `read_settings` reads it."""
    lines: list[str] = []
    sections: dict[str, Mapping[str, object]] = {}
    for entry in settings_of(type(settings)).values():
        value = entry.of(settings)
        if entry.is_section:
            sections[entry.name] = _values(value)
        elif isinstance(value, Mapping):
            # Sections whose settings another program knows, as those of brokers.
            sections |= {f"{entry.name}.{name}": table for name, table in value.items()}
        else:
            lines.append(f"{entry.name} = {toml_value(value)}\n")
    return "".join(lines) + sections_toml(sections)


def _values(section: object) -> dict[str, object]:
    given = {entry.name: entry.of(section) for entry in settings_of(type(section)).values()}
    return {name: value for name, value in given.items() if value is not None}


def sections_toml(sections: Mapping[str, Mapping[str, object]]) -> str:
    """A settings file from sections."""
    lines: list[str] = []
    for name, values in sections.items():
        lines.append(f"[{name}]")
        lines += [f"{key} = {toml_value(value)}" for key, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def overrides_of(sections: Mapping[str, Mapping[str, object]]) -> list[str]:
    """`section.setting=value` for each setting of each section."""
    return [
        f"{section}.{name}={toml_value(value)}"
        for section, settings in sections.items()
        for name, value in settings.items()
    ]


def toml_value(value: object) -> str:
    """A text, number, truth value, list, mapping or dataclass of these, as a TOML value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str() | Path():
            return _toml_text(str(value))
        case Mapping():
            return _toml_table(value.items())
        case Sequence():
            return f"[{', '.join(toml_value(item) for item in value)}]"
        case _ if dataclasses.is_dataclass(value):
            return _toml_table(_values(value).items())
        case _:
            message = f"no setting takes a {type(value).__name__}"
            raise SettingsError(message)


def _toml_table(items: Iterable[tuple[object, object]]) -> str:
    inner = ", ".join(f"{_toml_key(str(name))} = {toml_value(item)}" for name, item in items)
    return f"{{ {inner} }}" if inner else "{}"


def _toml_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _toml_text(name)


def _toml_text(text: str) -> str:
    escapes = {'"': '\\"', "\\": "\\\\"}
    plain = (
        f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else escapes.get(c, c) for c in text
    )
    return f'"{"".join(plain)}"'
