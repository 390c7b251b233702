"""Which records somebody looks for: a text, or a small expression. Pure.

A text is looked for in key, value and headers, whatever its case. An expression compares:

    value.order.total > 100 and (key ~ eu- or headers.source = "web")
    not value.state = done
    value.items[0].sku != null and timestamp >= "2026-11-21T15:00:00Z"

Operands are `key`, `value`, a path into them where they are JSON (`value.a.b[0]`, `key["a b"]`),
`headers`, `headers.<name>`, `partition`, `offset` and `timestamp`. Operators are `=`, `!=`, `<`,
`<=`, `>`, `>=`, `~` (contains, whatever the case) and `!~`; between comparisons stand `and`, `or`,
`not` and parentheses. What is absent equals `null` and nothing else. A filter that does not begin
with an operand and an operator is a text; one in quotes always is.

Numbers are compared exactly, digit by digit: those of JSON, those that a text holds, and the places
and times of records. Of a number that has more than 1,000 characters or an exponent of more than
three digits, and of NaN and Infinity, a filter knows only that it is there: it equals nothing, and
is neither less nor more than anything. `~` looks at a number as it is written in the record.

There are no regular expressions: what one person looks for must not hold up a worker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

CHARS_MAX = 1_000
# A longer number is not read: no number of a filter is as long, and a record may be megabytes.
NUMBER_CHARS_MAX = CHARS_MAX
TERMS_MAX = 50
DEPTH_MAX = 20

PATH = r"""(?:[.\[](?:"[^"]*"|'[^']*'|[^\s=!<>~"'])*)?"""
OPERAND = rf"(?:key|value|headers|offset|partition|timestamp){PATH}"
BEGINS_EXPRESSION = re.compile(rf"[\s(]*(?:not\b[\s(]*)*{OPERAND}\s*(?:!?[=~]|[<>])")
TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<operator>==|!=|<=|>=|!~|[=<>~])
      | (?P<bracket>[()])
      | (?P<word>(?:[^\s()=!<>~"'\[\]]|\[(?:\d+|"[^"]*"|'[^']*')\])+)
    )""",
    re.VERBOSE,
)
STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?:(?P<at>\d+)|"(?P<one>[^"]*)"|'(?P<two>[^']*)')\]"""
)
# Exponents are small, so that no number is costly, whatever is done with it.
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
NEGATED = {"!=": "=", "!~": "~"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AS_JSON = json.JSONEncoder(ensure_ascii=False).encode


class RecordLike(Protocol):
    """What is looked at of a record, as confluent-kafka's messages have it."""

    def key(self) -> bytes | None:
        """Its key."""

    def value(self) -> bytes | None:
        """Its value."""

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        """Its headers, in order."""

    def partition(self) -> int | None:
        """Where it lies."""

    def offset(self) -> int | None:
        """Its place there."""

    def timestamp(self) -> tuple[int, int]:
        """Kind and Unix milliseconds."""


Filter = Callable[[Any], bool]
Condition = Callable[["Facts"], bool]


class FilterError(ValueError):
    """The filter cannot be understood; the text says where."""


@dataclass(slots=True)
class Number:
    """A number of a JSON text, as it is written there; it is read only where it is compared.

    Python would round a fraction to a float, and refuse an integer of thousands of digits. It also
    takes the words NaN, Infinity and -Infinity, which are numbers here too.
    """

    text: str


@dataclass(frozen=True)
class Literal:
    """What a comparison is with: as it is written, and what that means (None is null)."""

    text: str
    value: str | Decimal | bool | None


@dataclass
class Facts:
    """A record, of which each part is decoded at most once."""

    record: RecordLike
    _decoded: dict[str, Any] = field(default_factory=dict)

    def text(self, part: str) -> str | None:
        """Key or value as text; None where there is none."""
        if part not in self._decoded:
            content = getattr(self.record, part)()
            self._decoded[part] = None if content is None else content.decode(errors="replace")
        text: str | None = self._decoded[part]
        return text

    def json(self, part: str) -> Any:  # noqa: ANN401 (JSON)
        """Key or value as JSON, with a `Number` for each number; None where it is none."""
        name = f"{part} as JSON"
        if name not in self._decoded:
            text = self.text(part)
            try:
                self._decoded[name] = None if text is None else _parsed(text)
            except (ValueError, RecursionError):
                self._decoded[name] = None
        return self._decoded[name]

    def headers(self) -> list[tuple[str, str | None]]:
        """All headers, in order."""
        given = self.record.headers() or []
        return [(n, None if v is None else v.decode(errors="replace")) for n, v in given]


def _parsed(text: str) -> Any:  # noqa: ANN401 (JSON)
    return json.loads(text, parse_int=Number, parse_float=Number, parse_constant=Number)


def compile_filter(text: str) -> Filter:
    """What decides about a record. Raises `FilterError`."""
    if len(text) > CHARS_MAX:
        message = f"A filter has at most {CHARS_MAX} characters."
        raise FilterError(message)
    wanted = text.strip()
    if not wanted:
        message = "A filter needs a text or an expression."
        raise FilterError(message)
    if BEGINS_EXPRESSION.match(wanted):
        condition = _Parser(_tokens(wanted)).parse()
        return lambda record: condition(Facts(record))
    quoted = TOKEN.fullmatch(wanted)
    if quoted and quoted["text"]:
        wanted = _unquoted(wanted)
    return _text_filter(wanted.casefold())


def _text_filter(wanted: str) -> Filter:
    def matches(record: RecordLike) -> bool:
        facts = Facts(record)
        parts = [facts.text("value"), facts.text("key")]
        parts += [part for header in facts.headers() for part in header]
        return any(part is not None and wanted in part.casefold() for part in parts)

    return matches


@dataclass(frozen=True)
class Token:
    """A piece of an expression. `kind`: `text`, `operator`, `bracket`, `word` or `end`."""

    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[Token]:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            message = f"Character {at + 1} is not understood: {text[at:][:20]!r}."
            raise FilterError(message)
        found.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*found, Token("end", "", len(text))]


class _Parser:
    """`or` binds weakest, then `and`, then `not`."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._terms = 0

    def parse(self) -> Condition:
        """The whole expression."""
        condition = self._any(0)
        if self._next.kind != "end":
            raise self._unexpected("and, or, or the end")
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[0]

    def _take(self) -> Token:
        return self._tokens.pop(0)

    def _takes(self, kind: str, text: str) -> bool:
        if self._next.kind == kind and self._next.text.lower() == text:
            self._take()
            return True
        return False

    def _any(self, depth: int) -> Condition:
        terms = [self._all(depth)]
        while self._takes("word", "or"):
            terms.append(self._all(depth))
        return terms[0] if len(terms) == 1 else lambda facts: any(term(facts) for term in terms)

    def _all(self, depth: int) -> Condition:
        terms = [self._one(depth)]
        while self._takes("word", "and"):
            terms.append(self._one(depth))
        return terms[0] if len(terms) == 1 else lambda facts: all(term(facts) for term in terms)

    def _one(self, depth: int) -> Condition:
        if depth > DEPTH_MAX:
            message = f"More than {DEPTH_MAX} levels of parentheses."
            raise FilterError(message)
        if self._takes("word", "not"):
            inner = self._one(depth + 1)
            return lambda facts: not inner(facts)
        if self._takes("bracket", "("):
            inner = self._any(depth + 1)
            if not self._takes("bracket", ")"):
                raise self._unexpected("a closing parenthesis")
            return inner
        return self._comparison()

    def _comparison(self) -> Condition:
        self._terms += 1
        if self._terms > TERMS_MAX:
            message = f"More than {TERMS_MAX} comparisons."
            raise FilterError(message)
        if self._next.kind != "word":
            raise self._unexpected("key, value, headers, partition, offset or timestamp")
        operand = self._take()
        candidates = _operand(operand)
        if self._next.kind != "operator":
            raise self._unexpected("an operator, as = or ~")
        operator = self._take().text.replace("==", "=")
        if self._next.kind not in {"text", "word"}:
            raise self._unexpected("a value")
        wanted = _literal(self._take(), moment=operand.text == "timestamp")
        return _compared(candidates, operator, wanted)

    def _unexpected(self, expected: str) -> FilterError:
        found = repr(self._next.text) if self._next.text else "the end"
        return FilterError(f"Character {self._next.at + 1}: {expected} is expected, not {found}.")


def _operand(token: Token) -> Callable[[Facts], list[Any]]:
    """What of a record is compared: no, one or several values; None stands for null."""
    root = re.match(r"[a-z]*", token.text)
    name = root[0] if root else ""
    rest = token.text[len(name) :]
    steps = _steps(rest, token)
    if name in {"partition", "offset"} and not steps:
        return lambda facts: [getattr(facts.record, name)()]
    if name == "timestamp" and not steps:
        return lambda facts: [facts.record.timestamp()[1]]
    if name == "headers" and not steps:
        return lambda facts: [part for header in facts.headers() for part in header]
    if name == "headers" and all(isinstance(step, str) for step in steps):
        # A header's name may have dots.
        header = rest[1:] if rest.startswith(".") else str(steps[0])
        return lambda facts: [value for key, value in facts.headers() if key == header]
    if name in {"key", "value"}:
        if not steps:
            return lambda facts: [facts.text(name)]
        return lambda facts: _at_path(facts.json(name), steps)
    message = f"Character {token.at + 1}: {token.text!r} is no part of a record."
    raise FilterError(message)


def _steps(path: str, token: Token) -> list[str | int]:
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        match = STEP.match(path, at)
        if match is None:
            message = f"Character {token.at + 1}: {token.text!r} is no path."
            raise FilterError(message)
        if match["at"] is not None:
            steps.append(int(match["at"][:9]))
        else:
            names = match.group("name", "one", "two")
            steps.append(next(name for name in names if name is not None))
        at = match.end()
    return steps


def _at_path(value: Any, steps: Sequence[str | int]) -> list[Any]:  # noqa: ANN401 (JSON)
    for step in steps:
        if isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        elif isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        else:
            return []
    return [value]


def _literal(token: Token, *, moment: bool) -> Literal:
    text = _unquoted(token.text) if token.kind == "text" else token.text
    if token.kind == "word":
        constants = {"true": True, "false": False, "null": None}
        if text.lower() in constants:
            return Literal(text, constants[text.lower()])
        number = _number(text)
        if number is not None:
            return Literal(text, number)
    if moment:
        at = _moment(text, token)
        return Literal(f"{at:f}", at)
    return Literal(text, text)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _moment(text: str, token: Token) -> Decimal:
    """Unix milliseconds of an ISO 8601 moment; without a zone it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"Character {token.at + 1}: {text!r} is no moment, as 2026-11-21T15:00:00Z."
        raise FilterError(message) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    return Decimal(microseconds).scaleb(-3).normalize()


def _number(text: str) -> Decimal | None:
    """The number that a text holds, without rounding; None where it holds none, or one too long."""
    if len(text) > NUMBER_CHARS_MAX or not NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _compared(
    candidates: Callable[[Facts], list[Any]], operator: str, wanted: Literal
) -> Condition:
    if operator in NEGATED:
        positive = _compared(candidates, NEGATED[operator], wanted)
        return lambda facts: not positive(facts)
    meant = wanted.value
    if meant is None:
        if operator != "=":
            message = "null can only be compared by = and !=."
            raise FilterError(message)
        return lambda facts: all(value is None for value in candidates(facts))
    if operator == "~":
        part = wanted.text.casefold()
        return lambda facts: any(
            part in _as_text(value).casefold() for value in candidates(facts) if value is not None
        )
    return lambda facts: any(_holds(value, operator, meant) for value in candidates(facts))


def _as_text(value: Any) -> str:  # noqa: ANN401 (JSON)
    """A text itself; else JSON on one line, with each number as it is written in the record."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    # A record may be nested as deeply as it likes, so this does not call itself.
    left = [_leaf(value)]
    while left:
        each = left.pop()
        if isinstance(each, str):
            parts.append(each)
        elif each:
            left += reversed(_pieces(each))
        else:
            parts.append("{}" if isinstance(each, dict) else "[]")
    return "".join(parts)


def _leaf(value: Any) -> str | list[Any] | dict[str, Any]:  # noqa: ANN401 (JSON)
    """JSON of what holds nothing else; a list or an object stays as it is."""
    if isinstance(value, Number):
        return value.text
    return value if isinstance(value, list | dict) else AS_JSON(value)


def _pieces(value: list[Any] | dict[str, Any]) -> list[str | list[Any] | dict[str, Any]]:
    """JSON of a list or an object that is not empty; what it holds may be to be written yet."""
    pieces: list[str | list[Any] | dict[str, Any]] = []
    if isinstance(value, list):
        for item in value:
            pieces += [", ", _leaf(item)]
        return ["[", *pieces[1:], "]"]
    for name, item in value.items():
        pieces += [", ", f"{AS_JSON(name)}: ", _leaf(item)]
    return ["{", *pieces[1:], "}"]


def _holds(value: Any, operator: str, wanted: str | Decimal | bool) -> bool:  # noqa: ANN401 (JSON)
    """Compares within one type: numbers, texts, or truth values. A text may be a number's."""
    if isinstance(wanted, bool):
        return operator == "=" and (value is wanted or value == AS_JSON(wanted))
    if isinstance(wanted, Decimal):
        number = _number_of(value)
        return number is not None and _ordered(number, operator, wanted)
    return isinstance(value, str) and _ordered(value, operator, wanted)


def _number_of(value: Any) -> Decimal | None:  # noqa: ANN401 (JSON)
    if isinstance(value, Number):
        return _number(value.text)
    if isinstance(value, str):
        return _number(value)
    # A partition, an offset or a timestamp.
    is_place = isinstance(value, int) and not isinstance(value, bool)
    return Decimal(value) if is_place else None


def _ordered(one: Any, operator: str, other: Any) -> bool:  # noqa: ANN401 (of one type)
    match operator:
        case "=":
            return bool(one == other)
        case "<":
            return bool(one < other)
        case "<=":
            return bool(one <= other)
        case ">":
            return bool(one > other)
        case _:
            return bool(one >= other)
