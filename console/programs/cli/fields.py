"""Options and arguments of commands, and how their values become parts of a request."""

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
    """The kind of a value."""

    TEXT = auto()
    INTEGER = auto()
    NUMBER = auto()
    # `--x` and `--no-x`; without either nothing is sent.
    BOOLEAN = auto()
    # `--x`; without it nothing is sent.
    FLAG = auto()
    CHOICE = auto()
    MOMENT = auto()
    # `--x NAME=VALUE`, which can be given several times.
    PAIRS = auto()
    # `--x VALUE`, which can be given several times.
    LIST = auto()
    # A secret. A required one is asked for, without an echo, where it is not given.
    SECRET = auto()
    # The JSON content of a file; `-` is the standard input.
    FILE = auto()
    # The name or the id of an item of a list of the API.
    REFERENCE = auto()


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a request.

    `name`: the member of the body (`spec.scale.min` is a member of members), or the query
    parameter. `query`: whether it is a query parameter. `option`: the option's name where it is not
    derived from `name`. `parse`: turns the value of the command line into the value that is sent;
    raises `ValueError`. `collection`: for a REFERENCE, the path of the list.
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
    # Whether `none` or `never` is sent as null.
    nullable: bool = False
    multiple: bool = False
    parse: Callable[[Any], Any] | None = None

    @property
    def flag_name(self) -> str:
        """The name of the option, without its dashes."""
        derived = self.name.removeprefix("spec.").removesuffix("_id")
        return self.option or derived.replace("_", "-").replace(".", "-")

    @property
    def key(self) -> str:
        """The name of click's parameter."""
        name = f"{self.name}.{self.option}".replace(".", "__").replace("-", "_")
        return ("q_" if self.query else "b_") + name

    def parameter(self, complete: Completion | None = None) -> click.Parameter:
        """Returns click's option or argument. `complete`: gives what a shell offers for it."""
        if self.argument:
            metavar = self.flag_name.upper().replace("-", "_")
            if self.multiple:
                metavar += "..."
            return click.Argument(
                [self.key],
                type=self._click_type(),
                metavar=metavar,
                shell_complete=complete,
                nargs=-1 if self.multiple else 1,
                required=self.required or not self.multiple,
            )
        return self._build_option(complete)

    def _build_option(self, complete: Completion | None) -> click.Option:
        many = self.multiple or self.kind in {Kind.PAIRS, Kind.LIST}
        names = [self.key, f"--{self.flag_name}"]
        if self.kind is Kind.BOOLEAN:
            names[1] += f"/--no-{self.flag_name}"
        return click.Option(
            names,
            type=None if self.kind in {Kind.BOOLEAN, Kind.FLAG} else self._click_type(),
            is_flag=self.kind in {Kind.BOOLEAN, Kind.FLAG},
            required=self.required and self.kind is not Kind.SECRET,
            multiple=many,
            default=None,
            help=self.help,
            metavar=_METAVARS.get(self.kind),
            shell_complete=complete,
        )

    def _click_type(self) -> click.ParamType[Any]:
        plain: dict[Kind, click.ParamType[Any]] = {
            Kind.INTEGER: click.INT,
            Kind.NUMBER: click.FLOAT,
            Kind.CHOICE: click.Choice(self.choices, case_sensitive=False),
            Kind.MOMENT: Moment(),
            Kind.PAIRS: Pair(),
            Kind.FILE: JsonFile(),
        }
        kind = plain.get(self.kind, click.STRING)
        return Nullable(kind) if self.nullable else kind

    def value_sent(self, values: Any) -> Any:
        """Returns what is sent for a value that click read; None where nothing is sent."""
        if values is None or values == ():
            return None
        if self.kind is Kind.PAIRS:
            values = dict(values)
        elif isinstance(values, tuple):
            values = list(values)
        return self.parse(values) if self.parse else values


_METAVARS = {
    Kind.MOMENT: "TIME",
    Kind.PAIRS: "NAME=VALUE",
    Kind.FILE: "FILE",
    Kind.REFERENCE: "NAME_OR_ID",
}

# Stands for a value that is sent as null, since None means that nothing is sent.
NULL: Any = type("Null", (), {"__repr__": lambda _: "null"})()


class Nullable(click.ParamType[Any]):
    """A type of click: the type `inner`, or `none` or `never`, which are sent as null."""

    def __init__(self, inner: click.ParamType[Any]) -> None:
        self.inner = inner
        self.name = inner.name

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Returns `NULL` for either word, or else the converted value."""
        return NULL if value in {"none", "never", NULL} else self.inner.convert(value, param, ctx)


class Moment(click.ParamType[Any]):
    """A type of click: a time as RFC 3339, `now`, or relative to now (`+30d`, `-24h`)."""

    name = "time"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Returns the time as RFC 3339 in UTC."""
        try:
            return parse_moment(str(value))
        except (ValueError, OverflowError):
            self.fail(
                f"{value!r} is no time: write it as RFC 3339, or like now, -24h or +30d.",
                param,
                ctx,
            )


def parse_moment(text: str, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> str:
    """Returns a time (see `Moment`) as RFC 3339 in UTC. Raises `ValueError`, `OverflowError`."""
    if text == "now":
        return _rfc3339(now())
    if relative := _RELATIVE.fullmatch(text):
        sign, count, unit = relative.groups()
        distance = timedelta(**{_UNITS[unit]: int(count)})
        return _rfc3339(now() + distance if sign == "+" else now() - distance)
    parsed = datetime.fromisoformat(text)
    return _rfc3339(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))


def _rfc3339(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Pair(click.ParamType[Any]):
    """A type of click: `NAME=VALUE`."""

    name = "pair"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[str, str]:
        """Returns name and value."""
        if isinstance(value, tuple):
            return value
        name, equals, content = str(value).partition("=")
        if not name or not equals:
            self.fail(f"{value!r} must be like NAME=VALUE.", param, ctx)
        return name, content


class JsonFile(click.ParamType[Any]):
    """A type of click: the path of a file that holds JSON."""

    name = "file"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Returns the decoded content of the file."""
        if not isinstance(value, str):
            return value
        try:
            return json.loads(sys.stdin.read() if value == "-" else Path(value).read_text())
        except OSError as error:
            self.fail(f"{value} cannot be read: {error.strerror}.", param, ctx)
        except ValueError as error:
            self.fail(f"{value} holds no JSON: {error}.", param, ctx)


def body_of(fields: tuple[Field, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body with the values that were given, each at the place that its name says.

    `values`: what click read, by `Field.key`. Raises `ValueError` where a value cannot be parsed.
    """
    body: dict[str, Any] = {}
    for field in fields:
        value = None if field.query else field.value_sent(values.get(field.key))
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


def query_of(fields: tuple[Field, ...], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the query parameters that were given. Raises `ValueError` as `body_of` does."""
    parameters = {f.name: f.value_sent(values.get(f.key)) for f in fields if f.query}
    return {name: value for name, value in parameters.items() if value is not None}
