"""Short functions that make fields, with which the tables of commands are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.programs.cli.fields import Field, Kind

ROLES = ("owner", "admin", "developer", "billing", "reader", "viewer", "member")
PROJECT_ROLES = ROLES[:-1]


def text(name: str, about: str, **more: Any) -> Field:
    """Returns a field of a text."""
    return Field(name, about, Kind.TEXT, **more)


def name(about: str = "Its name.", **more: Any) -> Field:
    """Returns the argument NAME of something new."""
    return Field("name", about, argument=True, **more)


def integer(name: str, about: str, **more: Any) -> Field:
    """Returns a field of a whole number."""
    return Field(name, about, Kind.INTEGER, **more)


def number(name: str, about: str, **more: Any) -> Field:
    """Returns a field of a number."""
    return Field(name, about, Kind.NUMBER, **more)


def boolean(name: str, about: str, **more: Any) -> Field:
    """Returns a field with the options `--x` and `--no-x`."""
    return Field(name, about, Kind.BOOLEAN, **more)


def flag(name: str, about: str, **more: Any) -> Field:
    """Returns a field with the option `--x`, which sends true."""
    return Field(name, about, Kind.FLAG, **more)


def choice(name: str, about: str, choices: tuple[str, ...], **more: Any) -> Field:
    """Returns a field of one of `choices`."""
    return Field(name, about, Kind.CHOICE, choices=choices, **more)


def moment(name: str, about: str, **more: Any) -> Field:
    """Returns a field of a time."""
    return Field(name, about, Kind.MOMENT, **more)


def pairs(name: str, about: str, option: str, **more: Any) -> Field:
    """Returns a field of names with values."""
    return Field(name, about, Kind.PAIRS, option=option, **more)


def listed(name: str, about: str, option: str, **more: Any) -> Field:
    """Returns a field of several values."""
    return Field(name, about, Kind.LIST, option=option, **more)


def cleared(name: str, about: str, option: str, value: Callable[[], object]) -> Field:
    """Returns a field whose option sends an empty value, such as `[]`."""
    return Field(name, about, Kind.FLAG, option=option, parse=lambda _: value())


def reference(name: str, about: str, collection: str, **more: Any) -> Field:
    """Returns a field of the name or the id of an item of a list."""
    return Field(name, about, Kind.REFERENCE, collection=collection, **more)


def labels() -> tuple[Field, ...]:
    """Returns the fields of labels: one that sets all of them, and one that removes them."""
    return (
        pairs("labels", "A label; they replace all that there are.", "label"),
        cleared("labels", "Without labels.", "no-labels", dict),
    )


def validate_only() -> Field:
    """Returns --validate-only."""
    return flag("validate_only", "Check everything, change nothing.", query=True)


def wake() -> Field:
    """Returns --wake."""
    return flag("wake", "Wake the cluster if it sleeps.", query=True)


def since(about: str) -> Field:
    """Returns --from, with which a span of time begins."""
    return moment("from", about, query=True)


def until(about: str) -> Field:
    """Returns --to, with which a span of time ends."""
    return moment("to", about, query=True)


def expiry(about: str = "When it ends by itself; `never` for never.") -> Field:
    """Returns --expires."""
    return moment("expires_at", about, option="expires", nullable=True)
