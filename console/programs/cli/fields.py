"""Options and arguments of commands, and how a value becomes a member of a request."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum, auto
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_RELATIVE = re.compile(r"([+-])(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Kind(StrEnum):
    """What a value is."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()
    # `--x` and `--no-x`; left out where neither is given.
    BOOLEAN = auto()
    # `--x`; left out where it is not given.
    FLAG = auto()
    CHOICE = auto()
    MOMENT = auto()
    # `--x NAME=VALUE`, again and again.
    PAIRS = auto()
    # `--x VALUE`, again and again.
    LIST = auto()
    # Asked for without being shown, where it is neither given nor left out.
    SECRET = auto()
    # The JSON in a file; `-` is the standard input.
    FILE = auto()
    # The name or the id of something in a list of the API.
    REFERENCE = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a request.

    `name`: its member in the body (`spec.scale.min` is inside others), or the query parameter.
    `parse`: from what was given to what is sent. `collection`: of a REFERENCE, the list's path.
    """

    name: str
    help: str
    kind: Kind = Kind.TEXT
    required: bool = False
    argument: bool = False
    query: bool = False
    option: str = ""
    choices: tuple[str, ...] = ()
    collection: str = ""
    # `none` (of a moment: `never`) is sent as null.
    nullable: bool = False
    multiple: bool = False
    parse: Callable[[Any], Any] | None = None

    @property
    def flag_name(self) -> str:
        """The option without its dashes."""
        derived = self.name.removeprefix("spec.").removesuffix("_id")
        return self.option or derived.replace("_", "-").replace(".", "-")

    @property
    def key(self) -> str:
        """The parameter's name with click."""
        name = f"{self.name}.{self.option}".replace(".", "__").replace("-", "_")
        return ("q_" if self.query else "b_") + name

    def parameter(self, complete: Completion | None = None) -> click.Parameter:
        """The option or argument. `complete`: what a shell offers for it."""
        if self.argument:
            metavar = self.flag_name.upper().replace("-", "_")
            if self.multiple:
                metavar += "..."
            return click.Argument(
                [self.key],
                type=self._type(),
                metavar=metavar,
                shell_complete=complete,
                nargs=-1 if self.multiple else 1,
                required=self.required or not self.multiple,
            )
        return self._option(complete)

    def _option(self, complete: Completion | None) -> click.Option:
        many = self.multiple or self.kind in {Kind.PAIRS, Kind.LIST}
        names = [self.key, f"--{self.flag_name}"]
        if self.kind is Kind.BOOLEAN:
            names[1] += f"/--no-{self.flag_name}"
        return click.Option(
            names,
            type=None if self.kind in {Kind.BOOLEAN, Kind.FLAG} else self._type(),
            is_flag=self.kind in {Kind.BOOLEAN, Kind.FLAG},
            required=self.required and self.kind is not Kind.SECRET,
            multiple=many,
            default=None,
            help=self.help,
            metavar=_METAVARS.get(self.kind),
            shell_complete=complete,
        )

    def _type(self) -> click.ParamType[Any]:
        plain: dict[Kind, click.ParamType[Any]] = {
            Kind.INTEGER: click.INT,
            Kind.NUMBER: click.FLOAT,
            Kind.CHOICE: click.Choice(self.choices, case_sensitive=False),
            Kind.MOMENT: Moment(),
            Kind.PAIRS: Pair(),
            Kind.FILE: JsonFile(),
        }
        found = plain.get(self.kind, click.STRING)
        return Nullable(found) if self.nullable else found

    def sent(self, given: Any) -> Any:
        """What is sent for what click made of the command line; None: left out."""
        if given is None or given == ():
            return None
        if self.kind is Kind.PAIRS:
            given = dict(given)
        elif isinstance(given, tuple):
            given = list(given)
        return self.parse(given) if self.parse else given


_METAVARS = {
    Kind.MOMENT: "TIME",
    Kind.PAIRS: "NAME=VALUE",
    Kind.FILE: "FILE",
    Kind.REFERENCE: "NAME_OR_ID",
}

# A value that is sent as null: None means that nothing was given.
NULL: Any = type("Null", (), {"__repr__": lambda _: "null"})()


class Nullable(click.ParamType[Any]):
    """A value, or `none` (of a time `never`), which is sent as null."""

    def __init__(self, inner: click.ParamType[Any]) -> None:
        self.inner = inner
        self.name = inner.name

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """NULL for either word."""
        return NULL if value in {"none", "never", NULL} else self.inner.convert(value, param, ctx)


class Moment(click.ParamType[Any]):
    """A time: RFC 3339, `now`, or from now on (`+30d`) and ago (`-24h`)."""

    name = "time"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """RFC 3339 in UTC."""
        try:
            return moment(str(value))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither RFC 3339 nor like now, -24h, +30d.", param, ctx)


def moment(text: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> str:
    """A time as RFC 3339 in UTC. Raises ValueError."""
    if text == "now":
        return _rfc3339(now())
    if found := _RELATIVE.fullmatch(text):
        sign, count, unit = found.groups()
        distance = timedelta(**{_UNITS[unit]: int(count)})
        return _rfc3339(now() + distance if sign == "+" else now() - distance)
    parsed = datetime.fromisoformat(text)
    return _rfc3339(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


def _rfc3339(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Pair(click.ParamType[Any]):
    """`name=value`."""

    name = "pair"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, content = str(value).partition("=")
        if not name or not equals:
            self.fail(f"{value!r} is not like NAME=VALUE.", param, ctx)
        return name, content


class JsonFile(click.ParamType[Any]):
    """A file that holds JSON."""

    name = "file"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """The content, decoded."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(sys.stdin.read() if value == "-" else Path(value).read_text())
        except OSError as error:
            self.fail(f"{value} cannot be read: {error.strerror}.", param, ctx)
        except ValueError as error:
            self.fail(f"{value} holds no JSON: {error}.", param, ctx)


def body_of(fields: tuple[Field, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the body that were given, each inside of what its name says."""
    body: dict[str, Any] = {}
    for field in fields:
        value = None if field.query else field.sent(given.get(field.key))
        if value is None:
            continue
        inside = body
        *outer, last = field.name.split(".")
        for name in outer:
            inside = inside.setdefault(name, {})
        value = None if value is NULL else value
        if isinstance(value, dict) and isinstance(inside.get(last), dict):
            inside[last] |= value
        else:
            inside[last] = value
    return body


def query_of(fields: tuple[Field, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The query parameters that were given."""
    found = {f.name: f.sent(given.get(f.key)) for f in fields if f.query}
    return {name: value for name, value in found.items() if value is not None}
