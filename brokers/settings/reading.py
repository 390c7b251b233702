"""Reading settings from TOML, the command line and the environment into a dataclass."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from brokers.settings.errors import SettingsError, naming
from brokers.settings.fields import Setting, settings_of
from brokers.settings.values import Reading, fill_places, value_of

Settings = TypeVar("Settings")
AS_WRITTEN = Reading()


def load_settings_file(path: str | Path, parse: Callable[[str], Settings]) -> Settings:
    """Reads a settings file by `parse`. Raises `SettingsError`, which names the file."""
    with naming(path):
        return parse(Path(path).read_text(encoding="utf-8"))


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


@dataclass(frozen=True)
class Environment:
    """Settings in environment variables: `<prefix>_<SECTION>_<SETTING>`, or a shorter name.

    `shorthands`: section and setting by variable. A setting outside of sections is
    `<prefix>_<SETTING>`; such a variable and a shorthand count as absent where they are empty.
    """

    prefix: str
    shorthands: Mapping[str, tuple[str, str]]

    def variable(self, section: str, name: str) -> str:
        """The variable that documents name for a setting: the shorthand where there is one."""
        short = {place: variable for variable, place in self.shorthands.items()}
        return short.get((section, name)) or self._long(section, name)

    def over(
        self, table: Mapping[str, Any], kind: type, environ: Mapping[str, str]
    ) -> dict[str, Any]:
        """The table of a whole file of `kind`, with values of the environment over its own."""
        complete = dict(table)
        for entry in settings_of(kind).values():
            if not entry.is_section:
                if (variable := self._given("", entry.name, environ)) is not None:
                    complete[entry.name] = environ[variable]
            elif isinstance(own := complete.get(entry.name, {}), Mapping):
                complete[entry.name] = {**own, **self._of(entry, environ)}
        return complete

    def source(self, setting: str, environ: Mapping[str, str]) -> str | None:
        """The variable that sets a setting; None where none does."""
        section, _, name = setting.rpartition(".")
        return self._given(section, name, environ)

    def _of(self, section: Setting, environ: Mapping[str, str]) -> dict[str, str]:
        return {
            name: environ[variable]
            for kind in section.kinds
            for name in settings_of(kind)
            if (variable := self._given(section.name, name, environ)) is not None
        }

    def _given(self, section: str, name: str, environ: Mapping[str, str]) -> str | None:
        for variable, place in self.shorthands.items():
            if place == (section, name) and environ.get(variable):
                return variable
        variable = self._long(section, name)
        is_given = variable in environ if section else bool(environ.get(variable))
        return variable if is_given else None

    def _long(self, section: str, name: str) -> str:
        return "_".join(part for part in (self.prefix, section, name) if part).upper()


def read_settings(
    kind: type[Settings],
    table: Mapping[str, Any],
    name: str = "",
    *,
    reading: Reading = AS_WRITTEN,
    **others: object,
) -> Settings:
    """A dataclass of settings from a table of TOML; `name` is the section's, empty for a file.

    `others` are its fields that are no settings. Raises `SettingsError` for a setting that is
    unknown, missing, of another type, or against a rule.
    """
    known = settings_of(kind)
    unknown = sorted(set(table) - set(known))
    if unknown:
        full = _full(name, unknown[0])
        message = f"unknown setting {full}"
        raise SettingsError(message, full)
    values = {
        entry.path: _value(entry, table.get(entry.name, MISSING), _full(name, entry.name), reading)
        for entry in known.values()
    }
    return _built(kind, {**values, **others})


def _full(section: str, name: str) -> str:
    return f"{section}.{name}" if section else name


def _value(setting: Setting, given: object, name: str, reading: Reading) -> object:
    if setting.is_section:
        table = {} if given is MISSING else given
        if not isinstance(table, Mapping):
            message = f"{name} is {given!r}, want a section"
            raise SettingsError(message, name)
        return read_settings(_variant(setting, table), table, name, reading=reading)
    if given is not MISSING:
        return value_of(setting, given, name, reading)
    if setting.default is MISSING:
        message = f"{name} must be set"
        raise SettingsError(message, name)
    default = fill_places(setting.default, reading.places)
    return Path(str(default)) if isinstance(setting.default, Path) else default


def _variant(setting: Setting, table: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a type)
    """The type of a section. One of an unknown kind is refused as its setting `kind` is read."""
    variants = setting.rules.variants
    if not variants:
        return setting.kind
    kind = table.get("kind")
    return variants.get(str(kind), next(iter(variants.values())))


def _built(kind: type[Settings], values: Mapping[str, object]) -> Settings:
    """A dataclass from its values, by the paths of their attributes."""
    own: dict[str, Any] = {}
    inlined: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        name, dot, rest = path.partition(".")
        if dot:
            inlined.setdefault(name, {})[rest] = value
        else:
            own[name] = value
    kinds = get_type_hints(kind)
    own |= {name: _built(kinds[name], inner) for name, inner in inlined.items()}
    return kind(**own)
