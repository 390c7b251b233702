"""Sections of a settings file (TOML) as dataclasses, for a cell's processes."""

from __future__ import annotations

import argparse
import dataclasses
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from brokers.errors import ConfigError
from brokers.locations import absolute


class SettingsError(Exception):
    """Settings that make no sense; the text names the setting."""


def parse_toml(text: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The tables of a settings file. `overrides` are `section.setting=value`, and win over it.

    A value that is not TOML is taken as text. Raises `SettingsError`.
    """
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(str(error)) from error
    for override in overrides:
        name, assigned, value = override.partition("=")
        section, dot, setting = name.strip().partition(".")
        table = given.setdefault(section, {})
        if not (assigned and dot and setting) or not isinstance(table, dict):
            message = f"{override!r} is not <section>.<setting>=<value>"
            raise SettingsError(message)
        table[setting] = _toml_or_text(value.strip())
    return given


def _toml_or_text(value: str) -> object:
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def add_set_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--set`, which may be repeated."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.SETTING=VALUE",
        help="a setting that wins over the file's; may be repeated",
    )


def read_section(
    kind: type,
    given: Mapping[str, object],
    name: str,
    readers: Mapping[str, Callable[[object], object]] | None = None,
) -> dict[str, Any]:
    """The fields of dataclass `kind` that section `name` gives, of their types.

    `readers` make values of types that are not plain, by the name of the type; they raise
    `ValueError` with what they want. Raises `SettingsError` for what is unknown, missing or of
    another type. Relative paths are taken from the working directory.
    """
    table = given.get(name, {})
    if not isinstance(table, dict):
        message = f"{name} is a section"
        raise SettingsError(message)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    refuse_unknown(table, set(fields), f"{name}.")
    for each in fields.values():
        absent = each.default is each.default_factory is dataclasses.MISSING
        if absent and each.name not in table:
            message = f"{name}.{each.name} must be set"
            raise SettingsError(message)
    made = readers or {}
    return {
        key: _value(value, fields[key].type, f"{name}.{key}", made) for key, value in table.items()
    }


def refuse_unknown(table: Mapping[str, object], known: set[str], prefix: str) -> None:
    """Raises `SettingsError` for a name in `table` that is not `known`."""
    unknown = sorted(set(table) - known)
    if unknown:
        message = f"unknown setting {prefix}{unknown[0]}"
        raise SettingsError(message)


def _value(
    value: object,
    kind: object,
    name: str,
    readers: Mapping[str, Callable[[object], object]],
) -> object:
    if str(kind) in readers:
        try:
            return readers[str(kind)](value)
        except ValueError as error:
            message = f"{name} is {value!r}, want {error}"
            raise SettingsError(message) from error
    wanted: dict[object, tuple[type, Callable[[Any], object]]] = {
        "str": (str, str),
        "int": (int, int),
        "bool": (bool, bool),
        "float": (int if type(value) is int else float, float),
        "Path": (str, lambda text: Path(text).absolute()),
        "Location": (str, absolute),
    }
    plain, convert = wanted[kind]
    if type(value) is not plain or value == "":
        want = {"Path": "a path", "Location": "a location"}.get(str(kind), kind)
        message = f"{name} is {value!r}, want {want}"
        raise SettingsError(message)
    try:
        return convert(value)
    except ConfigError as error:
        message = f"{name}: {error}"
        raise SettingsError(message) from error
