"""Settings as fields of dataclasses, with their meaning and the values that they may have.

A settings file is a dataclass, and so is each section of it. The type of a field says how its value
is read (see `values`); the field's metadata hold its `Rules`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from operator import attrgetter
from typing import Any, TypeVar, cast, get_type_hints

Value = TypeVar("Value")

# In place of a default: the setting must be set.
REQUIRED: Any = MISSING


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The values that a setting may have, beside its type.

    `minimum` and `maximum` may be reached, `above` may not. `empty`: a text or a list may be empty;
    without it one may only where its default is. `expected` describes the values in errors, in the
    place of a text from type and rules. A `secret` value is in no error. Where a section may be of
    several types, `variants` has them by the value of its setting `kind`.
    """

    doc: str = ""
    minimum: int | None = None
    maximum: int | None = None
    above: int | None = None
    choices: Sequence[object] = ()
    empty: bool = False
    expected: str = ""
    secret: bool = False
    variants: Mapping[str, type] = dataclasses.field(default_factory=dict)


def setting(default: Value, doc: str, **rules: Any) -> Value:  # noqa: ANN401 (those of `Rules`)
    """A setting: its default or `REQUIRED`, its text in the reference, and further `Rules`."""
    metadata = {"rules": Rules(doc=doc, **rules)}
    given: Any = default
    if isinstance(default, dict):
        return cast("Value", dataclasses.field(default_factory=default.copy, metadata=metadata))
    return cast("Value", dataclasses.field(default=given, metadata=metadata))


def section_of(variants: Mapping[str, type]) -> Any:  # noqa: ANN401 (one of the types)
    """A section whose setting `kind` selects its type; the first type is the default."""
    rules = Rules(variants=variants)
    return dataclasses.field(
        default_factory=next(iter(variants.values())), metadata={"rules": rules}
    )


def inlined() -> Any:  # noqa: ANN401 (the type of the field)
    """A field whose dataclass adds its settings to the section that has the field."""
    return dataclasses.field(metadata={"inlined": True})


@dataclass(frozen=True)
class Setting:
    """A setting, or a section, of a dataclass. `kind` is its type, `path` the attributes to it."""

    name: str
    kind: Any
    default: object
    rules: Rules
    path: str

    @property
    def is_section(self) -> bool:
        """Whether it is a table of settings."""
        return bool(self.rules.variants) or dataclasses.is_dataclass(self.kind)

    @property
    def kinds(self) -> tuple[type, ...]:
        """The types that a section may be of."""
        return tuple(self.rules.variants.values()) or (self.kind,)

    @property
    def may_be_empty(self) -> bool:
        """Whether an empty text or list is a value."""
        return self.rules.empty or self.default in ("", ())

    def of(self, settings: object) -> Any:  # noqa: ANN401 (of the type of the field)
        """Its value."""
        return attrgetter(self.path)(settings)


def settings_of(kind: type[Any]) -> Mapping[str, Setting]:
    """The settings and sections of a dataclass by name, with those of inlined dataclasses.

    A field that is neither a setting nor a section is left out.
    """
    if kind not in _settings_by_kind:
        _settings_by_kind[kind] = _settings_of(kind)
    return _settings_by_kind[kind]


_settings_by_kind: dict[type[Any], dict[str, Setting]] = {}


def _settings_of(kind: type[Any]) -> dict[str, Setting]:
    hints = get_type_hints(kind, include_extras=True)
    by_name: dict[str, Setting] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if field.metadata.get("inlined"):
            for inner in settings_of(hint).values():
                by_name[inner.name] = dataclasses.replace(inner, path=f"{field.name}.{inner.path}")
        elif "rules" in field.metadata or dataclasses.is_dataclass(hint):
            rules = field.metadata.get("rules", Rules())
            by_name[field.name] = Setting(field.name, hint, _default(field), rules, field.name)
    return by_name


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
