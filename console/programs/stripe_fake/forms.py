"""Parameters of requests: form encoding with brackets, and what an endpoint takes.

`a=1&b[c]=2&d[]=3&e[0][f]=4` is `{"a": "1", "b": {"c": "2"}, "d": ["3"], "e": [{"f": "4"}]}`.
Stripe's rules: an unknown parameter is refused by its name, and an empty string unsets what can
be unset.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from console.programs.stripe_fake.errors import Json, ParameterError

_NAME = re.compile(r"([^\[\]]+)((?:\[[^\[\]]*\])*)")
_KEYS_MAX, _KEY_CHARS_MAX, _VALUE_CHARS_MAX = 50, 40, 500


def decode_form(text: str) -> Json:
    """Decodes a form's text.

    Raises `ParameterError` where a name is no name of a parameter.
    """
    tree: Json = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        match = _NAME.fullmatch(name)
        if match is None:
            raise ParameterError(f"Invalid parameter name: {name}", param=name)
        keys = [match.group(1), *re.findall(r"\[([^\[\]]*)\]", match.group(2))]
        _insert(tree, keys, value, name)
    return {name: _listed(value) for name, value in tree.items()}


def _insert(tree: Json, keys: list[str], value: str, name: str) -> None:
    node = tree
    for position, key in enumerate(keys):
        own = str(len(node)) if key == "" else key
        if position == len(keys) - 1:
            node[own] = value
            return
        node = node.setdefault(own, {})
        if not isinstance(node, dict):
            raise ParameterError(f"Invalid parameter name: {name}", param=name)


def _listed(value: Any) -> Any:  # noqa: ANN401 (a decoded form)
    """Makes lists of the dicts whose keys are 0, 1, 2, …"""
    if not isinstance(value, dict):
        return value
    items = {key: _listed(item) for key, item in value.items()}
    if items and list(items) == [str(n) for n in range(len(items))]:
        return list(items.values())
    return items


class Parameter(Protocol):
    """What a parameter may be."""

    @property
    def required(self) -> bool:
        """Whether a request must have it."""

    def read(self, value: Any, param: str) -> Any:  # noqa: ANN401 (a decoded form)
        """Returns the parameter's value; raises `ParameterError`."""


def _empty(param: str) -> ParameterError:
    return ParameterError(
        f"You passed an empty string for '{param}'. We assume empty values are an attempt to unset"
        f" a parameter; however '{param}' cannot be unset. You should remove '{param}' from your"
        " request or supply a non-empty value.",
        code="parameter_invalid_empty",
        param=param,
    )


@dataclass(frozen=True, slots=True)
class Text:
    """A string of at most `chars_max` characters, one of `choices` where there are some."""

    required: bool = False
    choices: tuple[str, ...] = ()
    unset: bool = False
    chars_max: int = 5000

    def read(self, value: Any, param: str) -> str | None:  # noqa: ANN401 (a decoded form)
        """Returns the string; None where an empty one unsets it."""
        if not isinstance(value, str):
            raise ParameterError("Invalid string", param=param)
        if not value:
            if self.unset:
                return None
            raise _empty(param)
        if self.choices and value not in self.choices:
            allowed = ", ".join(self.choices)
            raise ParameterError(f"Invalid {param}: must be one of {allowed}", param=param)
        if len(value) > self.chars_max:
            raise ParameterError(
                f"Invalid string: must be at most {self.chars_max} characters",
                code="parameter_invalid_string_too_long",
                param=param,
            )
        return value


@dataclass(frozen=True, slots=True)
class Address:
    """An http or https address that a customer's browser is sent to."""

    required: bool = False

    def read(self, value: Any, param: str) -> str:  # noqa: ANN401 (a decoded form)
        """Returns the address."""
        parts = urlsplit(value) if isinstance(value, str) else None
        if parts is None or parts.scheme not in {"http", "https"} or not parts.netloc:
            raise ParameterError("Not a valid URL", code="url_invalid", param=param)
        return str(value)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number."""

    required: bool = False
    minimum: int | None = None

    def read(self, value: Any, param: str) -> int:  # noqa: ANN401 (a decoded form)
        """Returns the number."""
        if value == "":
            raise _empty(param)
        if not isinstance(value, str) or not re.fullmatch(r"-?\d{1,18}", value):
            raise ParameterError(
                f"Invalid integer: {value}", code="parameter_invalid_integer", param=param
            )
        number = int(value)
        if self.minimum is not None and number < self.minimum:
            raise ParameterError(
                f"This value must be greater than or equal to {self.minimum}.",
                code="parameter_invalid_integer",
                param=param,
            )
        return number


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`."""

    required: bool = False

    def read(self, value: Any, param: str) -> bool:  # noqa: ANN401 (a decoded form)
        """Returns the flag."""
        if value not in {"true", "false"}:
            raise ParameterError(f"Invalid boolean: {value}", param=param)
        return bool(value == "true")


@dataclass(frozen=True, slots=True)
class Items:
    """A list; `item` is what each of its values is."""

    item: Parameter = field(default_factory=Text)
    required: bool = False

    def read(self, value: Any, param: str) -> list[Any]:  # noqa: ANN401 (a decoded form)
        """Returns the list."""
        if not isinstance(value, list):
            raise ParameterError("Invalid array", param=param)
        return [self.item.read(item, f"{param}[{n}]") for n, item in enumerate(value)]


@dataclass(frozen=True, slots=True)
class Fields:
    """An object with named members, of which those that are not given are left out."""

    members: Mapping[str, Parameter]
    required: bool = False
    unset: bool = False

    def read(self, value: Any, param: str) -> Json | None:  # noqa: ANN401 (a decoded form)
        """Returns the object."""
        if value == "" and self.unset:
            return None
        if not isinstance(value, dict):
            raise ParameterError("Invalid object", param=param)
        return read_fields(self.members, value, param)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Up to 50 keys of 40 characters with values of 500; an empty value removes its key."""

    required: bool = False

    def read(self, value: Any, param: str) -> dict[str, str]:  # noqa: ANN401 (a decoded form)
        """Returns keys and values; those to remove have an empty value."""
        if value == "":
            return {}
        if isinstance(value, list):
            value = {str(n): item for n, item in enumerate(value)}
        if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
            raise ParameterError("Invalid metadata", param=param)
        if len(value) > _KEYS_MAX:
            raise ParameterError("You may only specify up to 50 metadata keys.", param=param)
        for key, text in value.items():
            if len(key) > _KEY_CHARS_MAX or len(text) > _VALUE_CHARS_MAX:
                raise ParameterError(
                    "Metadata keys have at most 40 characters, and values at most 500.",
                    param=f"{param}[{key}]",
                )
        return dict(value)


@dataclass(frozen=True, slots=True)
class Created:
    """A Unix time, or bounds of it (`gt`, `gte`, `lt`, `lte`)."""

    required: bool = False

    def read(self, value: Any, param: str) -> dict[str, int]:  # noqa: ANN401 (a decoded form)
        """Returns the bounds."""
        if isinstance(value, dict):
            bound = Integer(minimum=0)
            names = ("gt", "gte", "lt", "lte")
            return read_fields(dict.fromkeys(names, bound), value, param)
        time = Integer(minimum=0).read(value, param)
        return {"gte": time, "lte": time}


def read_fields(fields: Mapping[str, Parameter], form: Json, parent: str = "") -> Json:
    """Returns the values of a decoded form by their names.

    Raises `ParameterError` with the name of the first parameter that is unknown, missing or
    wrong.
    """

    def full(name: str) -> str:
        return f"{parent}[{name}]" if parent else name

    for name in form:
        if name not in fields:
            near = difflib.get_close_matches(name, fields, 1)
            hint = f". Did you mean {full(near[0])}?" if near else ""
            raise ParameterError(
                f"Received unknown parameter: {full(name)}{hint}",
                code="parameter_unknown",
                param=full(name),
            )
    for name, kind in fields.items():
        if kind.required and name not in form:
            raise ParameterError(
                f"Missing required param: {full(name)}.", code="parameter_missing", param=full(name)
            )
    return {name: fields[name].read(value, full(name)) for name, value in form.items()}


EXPAND: Mapping[str, Parameter] = {"expand": Items()}
LISTED: Mapping[str, Parameter] = {
    **EXPAND,
    "limit": Integer(minimum=1),
    "starting_after": Text(),
    "ending_before": Text(),
    "created": Created(),
}
ADDRESS: Mapping[str, Parameter] = {
    name: Text(unset=True) for name in ("city", "country", "line1", "line2", "postal_code", "state")
}
CARD_ONLY = Items(Text(choices=("card",)))


def choice_of(names: Sequence[str], *, required: bool = False) -> Text:
    """Returns a text that must be one of `names`."""
    return Text(choices=tuple(names), required=required)
