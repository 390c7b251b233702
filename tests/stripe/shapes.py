"""Shapes of answers and of parameters, as the pinned `stripe` package declares them.

Its classes are generated from Stripe's own description of the version of the API that it pins, so
what they say is what Stripe answers.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin, get_type_hints

import stripe
import stripe.billing_portal
import stripe.checkout
import stripe.params
import typing_extensions
from stripe import StripeObject

from console.programs.stripe_fake.forms import Fields, Items, Parameter

# What the fake sets for the library alone, which no class declares.
_EVERYWHERE = frozenset({"object"})


def complaints(value: Any, hint: Any, where: str) -> Iterator[str]:  # noqa: ANN401 (JSON, types)
    """What in an answer is not as `hint` declares it."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(hint, ForwardRef | str):
        name = hint.__forward_arg__ if isinstance(hint, ForwardRef) else hint
        kind = _class_of(name)
        if kind is None:
            yield f"{where} is of {name}, which the package does not show"
        else:
            yield from complaints(value, kind, where)
    elif hint is Any or isinstance(hint, typing.TypeVar):
        return
    elif origin in {Union, types.UnionType}:
        yield from _union_complaints(value, arguments, where)
    elif origin is Literal:
        if value not in arguments:
            yield f"{where} is {value!r}, not one of {arguments}"
    elif origin is list:
        if not isinstance(value, list):
            yield f"{where} is {value!r}, no list"
        else:
            for n, item in enumerate(value):
                yield from complaints(item, arguments[0], f"{where}[{n}]")
    else:
        yield from _object_complaints(value, origin or hint, where)


def _union_complaints(
    value: Any,  # noqa: ANN401 (JSON)
    arguments: tuple[Any, ...],
    where: str,
) -> Iterator[str]:
    if value is None and type(None) in arguments:
        return
    by_branch = [list(complaints(value, one, where)) for one in arguments if one is not type(None)]
    if all(by_branch):
        # The complaints about the branch that is nearest.
        yield from min(by_branch, key=len)


def _object_complaints(value: Any, kind: Any, where: str) -> Iterator[str]:  # noqa: ANN401
    if not isinstance(kind, type) or not issubclass(kind, StripeObject):
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            yield f"{where} is {value!r}, not {kind.__name__}"
        return
    if not isinstance(value, dict):
        yield f"{where} is {value!r}, no {kind.__qualname__}"
        return
    declared = members_of(kind)
    if not declared:  # any members, such as those of metadata
        return
    for name in sorted(value.keys() - declared.keys() - _EVERYWHERE):
        yield f"{where}.{name} is no member of {kind.__qualname__}"
    for name, hint in declared.items():
        if name in value:
            yield from complaints(value[name], hint, f"{where}.{name}")
        elif type(None) not in get_args(hint) and name != "deleted":
            yield f"{where}.{name} is missing"


def members_of(kind: type) -> dict[str, Any]:
    """Returns the members of an object's class with their types."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, StripeObject) and base is not StripeObject:
            members |= {
                name: hint
                for name, hint in inspect.get_annotations(base).items()
                if not name.startswith("_") and not _is_of_class(hint)
            }
    members.pop("deleted", None)
    return members


def _is_of_class(hint: Any) -> bool:  # noqa: ANN401
    origin: Any = get_origin(hint)
    return origin is typing.ClassVar


def _class_of(name: str) -> Any:  # noqa: ANN401 (a class of the package)
    own = name.removesuffix("Resource")  # what another class of a module is called
    for module in (stripe, stripe.checkout, stripe.billing_portal):
        if hasattr(module, own):
            return getattr(module, own)
    return None


def parameter_complaints(
    fields: Mapping[str, Parameter], declared: type, where: str
) -> Iterator[str]:
    """What parameters the fake takes that Stripe does not, or Stripe requires and the fake not."""
    modules = ("stripe._stripe_context", "stripe._request_options", declared.__module__)
    names = {name: kind for module in modules for name, kind in vars(import_module(module)).items()}
    hints = get_type_hints(declared, names, include_extras=True)
    for name, field in fields.items():
        if name not in hints:
            yield f"{where}[{name}] is no parameter"
            continue
        yield from _field_complaints(field, hints[name], f"{where}[{name}]")
    for name in sorted(declared.__required_keys__):  # type: ignore[attr-defined]
        if name not in fields or not fields[name].required:
            yield f"{where}[{name}] is required"


def _field_complaints(field: Parameter, hint: Any, where: str) -> Iterator[str]:  # noqa: ANN401
    options = list(_leaves(hint))
    if isinstance(field, Items):
        return
    if isinstance(field, Fields):
        nested = [one for one in options if typing_extensions.is_typeddict(one)]
        by_class = [list(parameter_complaints(field.members, one, where)) for one in nested]
        if all(by_class):
            yield from min(by_class, key=len, default=[f"{where} is no object"])
        return
    literals = {text for one in options if get_origin(one) is Literal for text in get_args(one)}
    for choice in getattr(field, "choices", ()):
        if literals and choice not in literals:
            yield f"{where} is never {choice}"


def _leaves(hint: Any) -> Iterator[Any]:  # noqa: ANN401
    if get_origin(hint) is Literal or not get_args(hint):
        yield hint
    else:
        for inner in get_args(hint):
            yield from _leaves(inner)
