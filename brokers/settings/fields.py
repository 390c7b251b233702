"""Settings as fields of dataclasses: what each means, and what it may be.

A settings file is a dataclass, and so is each section of it. The type of a field says how its value
is read (see `values`); its metadata say the rest.
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
    """What a value may be, besides of its type.

    `minimum` and `maximum` may be reached, `above` may not. `empty`: a text or a list may be empty;
    without it one may where its default is. `wanted` says in words what else is said by the type
    and the other rules. A `secret` value is in no error. Where the same section is of one of
    several types, `variants` are these by the value of its setting `kind`.
    """

    doc: str = ""
    minimum: int | None = None
    maximum: int | None = None
    above: int | None = None
    choices: Sequence[object] = ()
    empty: bool = False
    wanted: str = ""
    secret: bool = False
    variants: Mapping[str, type] = dataclasses.field(default_factory=dict)


def setting(default: Value, doc: str, **rules: Any) -> Value:  # noqa: ANN401 (those of `Rules`)
    """A setting: its default or `REQUIRED`, its line in the reference, and further `Rules`."""
    metadata = {"rules": Rules(doc=doc, **rules)}
    given: Any = default
    if isinstance(default, dict):
        return cast("Value", dataclasses.field(default_factory=default.copy, metadata=metadata))
    return cast("Value", dataclasses.field(default=given, metadata=metadata))


def section_of(variants: Mapping[str, type]) -> Any:  # noqa: ANN401 (one of the types)
    """A section whose setting `kind` says of which type it is; the first one is the default."""
    rules = Rules(variants=variants)
    return dataclasses.field(
        default_factory=next(iter(variants.values())), metadata={"rules": rules}
    )


def inlined() -> Any:  # noqa: ANN401 (the type of the field)
    """A dataclass whose settings stand beside those of the dataclass that has this field."""
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
    """The settings and sections of a dataclass, by name, those of inlined ones in their place.

    A field that is neither a setting nor a section is none of these.
    """
    if kind not in _found:
        _found[kind] = _settings_of(kind)
    return _found[kind]


_found: dict[type[Any], dict[str, Setting]] = {}


def _settings_of(kind: type[Any]) -> dict[str, Setting]:
    hints = get_type_hints(kind, include_extras=True)
    found: dict[str, Setting] = {}
    for field in dataclasses.fields(kind):
        hint = hints[field.name]
        if field.metadata.get("inlined"):
            for each in settings_of(hint).values():
                found[each.name] = dataclasses.replace(each, path=f"{field.name}.{each.path}")
        elif "rules" in field.metadata or dataclasses.is_dataclass(hint):
            rules = field.metadata.get("rules", Rules())
            found[field.name] = Setting(field.name, hint, _default(field), rules, field.name)
    return found


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
