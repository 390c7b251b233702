"""What the tables are written with: fields in a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.programs.cli.fields import Field, Kind

ROLES = ("owner", "admin", "developer", "billing", "viewer", "member")
PROJECT_ROLES = ROLES[:-1]


def text(name: str, about: str, **more: Any) -> Field:
    """A text."""
    return Field(name, about, Kind.TEXT, **more)


def name(about: str = "Its name.", **more: Any) -> Field:
    """The name that something new gets, as an argument."""
    return Field("name", about, argument=True, **more)


def integer(name: str, about: str, **more: Any) -> Field:
    """A whole number."""
    return Field(name, about, Kind.INTEGER, **more)


def number(name: str, about: str, **more: Any) -> Field:
    """A number."""
    return Field(name, about, Kind.NUMBER, **more)


def boolean(name: str, about: str, **more: Any) -> Field:
    """Yes or no."""
    return Field(name, about, Kind.BOOLEAN, **more)


def flag(name: str, about: str, **more: Any) -> Field:
    """Yes, where it is given."""
    return Field(name, about, Kind.FLAG, **more)


def choice(name: str, about: str, choices: tuple[str, ...], **more: Any) -> Field:
    """One of some words."""
    return Field(name, about, Kind.CHOICE, choices=choices, **more)


def moment(name: str, about: str, **more: Any) -> Field:
    """A time."""
    return Field(name, about, Kind.MOMENT, **more)


def pairs(name: str, about: str, option: str, **more: Any) -> Field:
    """Names with values."""
    return Field(name, about, Kind.PAIRS, option=option, **more)


def listed(name: str, about: str, option: str, **more: Any) -> Field:
    """Several values."""
    return Field(name, about, Kind.LIST, option=option, **more)


def cleared(name: str, about: str, option: str, value: Callable[[], object]) -> Field:
    """An option that sends an empty value."""
    return Field(name, about, Kind.FLAG, option=option, parse=lambda _: value())


def reference(name: str, about: str, collection: str, **more: Any) -> Field:
    """The name or the id of something."""
    return Field(name, about, Kind.REFERENCE, collection=collection, **more)


def labels() -> tuple[Field, ...]:
    """Labels, all of them at once."""
    return (
        pairs("labels", "A label; they replace all that there are.", "label"),
        cleared("labels", "Without labels.", "no-labels", dict),
    )


def validate_only() -> Field:
    """Nothing is changed."""
    return flag("validate_only", "Check everything, change nothing.", query=True)


def wake() -> Field:
    """A sleeping cluster is woken."""
    return flag("wake", "Wake the cluster if it sleeps.", query=True)


def since(about: str) -> Field:
    """Where a span of time begins."""
    return moment("from", about, query=True)


def until(about: str) -> Field:
    """Where it ends."""
    return moment("to", about, query=True)


def expiry(about: str = "When it ends by itself; `never` for never.") -> Field:
    """When something ends."""
    return moment("expires_at", about, option="expires", nullable=True)
