"""Values of settings, by the type of the field.

The types are `str`, `int`, `float`, `bool`, `Path`, `Location`, `object`, a tuple or a mapping of
these, or one of these or `None`, which stands for an absent value. A path and the path in a
location are made absolute from the working directory.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from brokers.errors import ConfigError
from brokers.locations import Location, absolute
from brokers.settings.errors import SettingsError
from brokers.settings.fields import Setting

Plain = TypeVar("Plain", bound=float)

TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Reading:
    """How values are read.

    `places`: texts by the name that stands for them in braces, as `{home}`. `as_text`: a number, a
    truth value and a list (separated by commas) may be given as text too, as the environment has
    them.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    as_text: bool = False


class _UnfitError(Exception):
    """The value is not of the type. The text, which may be empty, says more than the type does."""


def value_of(setting: Setting, given: object, name: str, reading: Reading) -> object:
    """The value of a setting, converted to its type. Raises `SettingsError`."""
    try:
        value = _read_value(given, setting.kind, reading)
    except _UnfitError as error:
        raise unfit_error(setting, given, name, str(error)) from error
    if not _is_allowed(setting, value):
        raise unfit_error(setting, given, name)
    return value


def unfit_error(setting: Setting, given: object, name: str, more: str = "") -> SettingsError:
    """The error for a value that a setting may not have."""
    shown = "(hidden)" if setting.rules.secret else repr(given)
    said = f"{name} is {shown}, want {describe_values(setting)}"
    return SettingsError(f"{said}: {more}" if more else said, name)


def describe_values(setting: Setting) -> str:
    """The values that a setting may have, in words."""
    rules = setting.rules
    if rules.expected:
        return rules.expected
    if rules.choices:
        return f"one of {', '.join(str(choice) for choice in rules.choices)}"
    kind = _words(setting.kind)
    match rules.minimum, rules.maximum:
        case None, None:
            bounds = "" if rules.above is None else f" of more than {rules.above}"
        case None, most:
            bounds = f" of at most {most}"
        case least, None:
            bounds = f" of {least} or more"
        case least, most:
            bounds = f" from {least} to {most}"
    if not bounds and kind == "a text" and not setting.may_be_empty:
        return "a text that is not empty"
    return kind + bounds


def _is_allowed(setting: Setting, value: Any) -> bool:  # noqa: ANN401 (of the setting's type)
    rules = setting.rules
    if value in ("", ()) and not setting.may_be_empty:
        return False
    if rules.choices and value not in rules.choices:
        return False
    if rules.minimum is not None and value < rules.minimum:
        return False
    if rules.maximum is not None and value > rules.maximum:
        return False
    return rules.above is None or value > rules.above


def fill_places(value: object, places: Mapping[str, str]) -> object:
    """A text, or a path that is a default, with the names in braces replaced by `places`."""
    if isinstance(value, str | Path) and places:
        text = str(value)
        for place, replacement in places.items():
            text = text.replace(f"{{{place}}}", replacement)
        return text
    return value


def _read_value(given: object, kind: Any, reading: Reading) -> object:  # noqa: ANN401 (a type)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return _PLAIN[kind](fill_places(given, reading.places), reading)
    if origin in (typing.Union, types.UnionType):
        return _read_value(given, parts[0], reading)
    if origin is tuple:
        return _items(given, parts, reading)
    if origin is Mapping:
        if not isinstance(given, Mapping):
            raise _UnfitError
        return {name: _read_value(item, parts[1], reading) for name, item in given.items()}
    message = f"no setting is a {kind}"
    raise TypeError(message)


def _items(given: object, parts: tuple[Any, ...], reading: Reading) -> tuple[object, ...]:
    """The items of a list. `parts` is a type and an ellipsis, or the types of all items."""
    if isinstance(given, str) and reading.as_text:
        given = [part.strip() for part in given.split(",") if part.strip()]
    if not isinstance(given, list | tuple):
        raise _UnfitError
    if parts[-1] is Ellipsis:
        return tuple(_read_value(item, parts[0], reading) for item in given)
    if len(given) != len(parts):
        raise _UnfitError
    return tuple(_read_value(item, kind, reading) for item, kind in zip(given, parts, strict=True))


def _text(given: object, _reading: Reading) -> str:
    if not isinstance(given, str):
        raise _UnfitError
    return given


def _whole(given: object, reading: Reading) -> int:
    # A truth value is a whole number to Python.
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    return _from_text(given, int, reading)


def _number(given: object, reading: Reading) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool):
        return float(given)
    return _from_text(given, float, reading)


def _truth(given: object, reading: Reading) -> bool:
    if isinstance(given, bool):
        return given
    return _from_text(given, TRUTH.__getitem__, reading)


def _from_text(given: object, convert: Callable[[str], Plain], reading: Reading) -> Plain:
    if not (reading.as_text and isinstance(given, str)):
        raise _UnfitError
    try:
        return convert(given)
    except (ValueError, KeyError) as error:
        raise _UnfitError from error


def _path(given: object, _reading: Reading) -> Path:
    if not isinstance(given, str) or not given:
        raise _UnfitError
    return Path(given).expanduser().absolute()


def _location(given: object, _reading: Reading) -> str:
    if not isinstance(given, str) or not given:
        raise _UnfitError
    try:
        return absolute(given)
    except ConfigError as error:
        raise _UnfitError(str(error)) from error


_PLAIN: Mapping[Any, Callable[[object, Reading], object]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: _truth,
    Path: _path,
    Location: _location,
    object: lambda given, _reading: given,
}
# One, and several of them.
_WORDS: Mapping[Any, tuple[str, str]] = {
    str: ("a text", "texts"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    bool: ("true or false", "truth values"),
    Path: ("a path", "paths"),
    Location: ("a location", "locations"),
    object: ("a value", "values"),
}


def _words(kind: Any, *, many: bool = False) -> str:  # noqa: ANN401 (a type)
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if kind in _WORDS:
        return _WORDS[kind][many]
    if origin in (typing.Union, types.UnionType):
        return _words(parts[0], many=many)
    if origin is tuple:
        return f"{'lists' if many else 'a list'} of {_words(parts[0], many=True)}"
    return f"{'tables' if many else 'a table'} of {_words(parts[1], many=True)}"
