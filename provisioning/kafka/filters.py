"""Filters of records: a text, or a small expression. Pure.

A text is searched in key, value and headers, in any case. An expression compares:

    value.order.total > 100 and (key ~ eu- or headers.source = "web")
    not value.state = done
    value.items[0].sku != null and timestamp >= "2026-11-21T15:00:00Z"

Operands are `key`, `value`, a path into them where they are JSON (`value.a.b[0]`, `key["a b"]`),
`headers`, `headers.<name>`, `partition`, `offset` and `timestamp`. Operators are `=`, `!=`, `<`,
`<=`, `>`, `>=`, `~` (contains, in any case) and `!~`. Comparisons are combined with `and`, `or`,
`not` and parentheses. An absent value equals `null` and nothing else. A filter that does not begin
with an operand and an operator is a text; one in quotes always is.

Numbers are compared exactly, as decimals: those of JSON, texts that are numbers, and partitions,
offsets and timestamps. A number of more than 1,000 characters or with an exponent of more than
three digits, NaN and Infinity are not null, but they equal nothing, and are neither less nor
greater than anything. `~` searches a number as it is written in the record.

There are no regular expressions, because a filter must not hold up the process that it runs in. Of
a key or a value it reads the first MiB (`records.FILTERED_BYTES_MAX`), and a path finds nothing in
one of more than 128 KiB (`JSON_BYTES_MAX`), as in one that is no JSON.
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
# A longer number is not parsed: no filter has one as long, and a record's may have megabytes.
NUMBER_CHARS_MAX = CHARS_MAX
# Larger JSON is not parsed: while Python parses it, for up to 30 ms a MiB, nothing else of the
# process runs.
JSON_BYTES_MAX = 128 * 1024
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
# Exponents have at most three digits, so that no number is expensive to compare.
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d{1,3})?")
NEGATED = {"!=": "=", "!~": "~"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AS_JSON = json.JSONEncoder(ensure_ascii=False).encode
# A number of a JSON text becomes the bytes that it is written in, and is parsed only where it is
# compared. Python would round a fraction to a float, and refuse an integer of thousands of digits.
# Its parser also takes NaN, Infinity and -Infinity, which are such numbers too. It calls this for
# each number, and a function in Python would take ten times as long.
AS_WRITTEN = str.encode


class RecordLike(Protocol):
    """The parts of a record that filters read, by the names of confluent-kafka's messages."""

    def key(self) -> bytes | None:
        """The key; None where there is none."""

    def value(self) -> bytes | None:
        """The value; None in a tombstone."""

    def headers(self) -> Sequence[tuple[str, bytes | None]] | None:
        """The headers, in order; None where there is none."""

    def partition(self) -> int | None:
        """The number of its partition."""

    def offset(self) -> int | None:
        """Its offset."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of the timestamp and its Unix milliseconds."""


Filter = Callable[[Any], bool]
Condition = Callable[["Facts"], bool]


class FilterError(ValueError):
    """The filter is not valid. The message says at which character."""


@dataclass(frozen=True)
class Literal:
    """The right side of a comparison: its text, and its value (None is null)."""

    text: str
    value: str | Decimal | bool | None


@dataclass
class Facts:
    """A record whose parts are decoded at most once."""

    record: RecordLike
    _decoded: dict[str, Any] = field(default_factory=dict)

    def text(self, part: str) -> str | None:
        """The part `key` or `value` as text; None where there is none."""
        if part not in self._decoded:
            content = self._content(part)
            self._decoded[part] = None if content is None else content.decode(errors="replace")
        text: str | None = self._decoded[part]
        return text

    def json(self, part: str) -> Any:  # noqa: ANN401 (JSON)
        """Key or value as JSON, with bytes for each number (`AS_WRITTEN`).

        None where it is not JSON, or more than `JSON_BYTES_MAX`.
        """
        name = f"{part} as JSON"
        if name not in self._decoded:
            too_large = len(self._content(part) or b"") > JSON_BYTES_MAX
            text = None if too_large else self.text(part)
            try:
                self._decoded[name] = None if text is None else _parse_json(text)
            except (ValueError, RecursionError):
                self._decoded[name] = None
        return self._decoded[name]

    def headers(self) -> list[tuple[str, str | None]]:
        """All headers as texts, in order."""
        raw_headers = self.record.headers() or []
        return [(n, None if v is None else v.decode(errors="replace")) for n, v in raw_headers]

    def _content(self, part: str) -> bytes | None:
        content: bytes | None = getattr(self.record, part)()
        return content


def _parse_json(text: str) -> Any:  # noqa: ANN401 (JSON)
    return json.loads(text, parse_int=AS_WRITTEN, parse_float=AS_WRITTEN, parse_constant=AS_WRITTEN)


def compile_filter(text: str) -> Filter:
    """Compiles a filter to a function that says whether a record passes. Raises `FilterError`."""
    if len(text) > CHARS_MAX:
        message = f"A filter has at most {CHARS_MAX} characters."
        raise FilterError(message)
    stripped = text.strip()
    if not stripped:
        message = "A filter needs a text or an expression."
        raise FilterError(message)
    if BEGINS_EXPRESSION.match(stripped):
        condition = _Parser(_split_tokens(stripped)).parse()
        return lambda record: condition(Facts(record))
    quoted = TOKEN.fullmatch(stripped)
    if quoted and quoted["text"]:
        stripped = _unquote(stripped)
    return _text_filter(stripped.casefold())


def _text_filter(needle: str) -> Filter:
    def matches(record: RecordLike) -> bool:
        facts = Facts(record)
        parts = [facts.text("value"), facts.text("key")]
        parts += [part for header in facts.headers() for part in header]
        return any(part is not None and needle in part.casefold() for part in parts)

    return matches


@dataclass(frozen=True)
class Token:
    """A token of an expression, at a character. `kind`: a group of `TOKEN`, or `end`."""

    kind: str
    text: str
    at: int


def _split_tokens(text: str) -> list[Token]:
    tokens, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            message = f"Character {at + 1} is not understood: {text[at:][:20]!r}."
            raise FilterError(message)
        tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        at = match.end()
    return [*tokens, Token("end", "", len(text))]


class _Parser:
    """A recursive-descent parser: `or` binds weakest, then `and`, then `not`."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._terms = 0

    def parse(self) -> Condition:
        """Parses the whole expression. Raises `FilterError`."""
        condition = self._parse_or(0)
        if self._next.kind != "end":
            raise self._unexpected_token("and, or, or the end")
        return condition

    @property
    def _next(self) -> Token:
        return self._tokens[0]

    def _take_token(self) -> Token:
        return self._tokens.pop(0)

    def _take_if(self, kind: str, text: str) -> bool:
        if self._next.kind == kind and self._next.text.lower() == text:
            self._take_token()
            return True
        return False

    def _parse_or(self, depth: int) -> Condition:
        terms = [self._parse_and(depth)]
        while self._take_if("word", "or"):
            terms.append(self._parse_and(depth))
        return terms[0] if len(terms) == 1 else lambda facts: any(term(facts) for term in terms)

    def _parse_and(self, depth: int) -> Condition:
        terms = [self._parse_not(depth)]
        while self._take_if("word", "and"):
            terms.append(self._parse_not(depth))
        return terms[0] if len(terms) == 1 else lambda facts: all(term(facts) for term in terms)

    def _parse_not(self, depth: int) -> Condition:
        if depth > DEPTH_MAX:
            message = f"More than {DEPTH_MAX} levels of parentheses."
            raise FilterError(message)
        if self._take_if("word", "not"):
            inner = self._parse_not(depth + 1)
            return lambda facts: not inner(facts)
        if self._take_if("bracket", "("):
            inner = self._parse_or(depth + 1)
            if not self._take_if("bracket", ")"):
                raise self._unexpected_token("a closing parenthesis")
            return inner
        return self._parse_comparison()

    def _parse_comparison(self) -> Condition:
        self._terms += 1
        if self._terms > TERMS_MAX:
            message = f"More than {TERMS_MAX} comparisons."
            raise FilterError(message)
        if self._next.kind != "word":
            raise self._unexpected_token("key, value, headers, partition, offset or timestamp")
        operand = self._take_token()
        candidates = _compile_operand(operand)
        if self._next.kind != "operator":
            raise self._unexpected_token("an operator, as = or ~")
        operator = self._take_token().text.replace("==", "=")
        if self._next.kind not in {"text", "word"}:
            raise self._unexpected_token("a value")
        literal = _parse_literal(self._take_token(), moment=operand.text == "timestamp")
        return _compile_comparison(candidates, operator, literal)

    def _unexpected_token(self, expected: str) -> FilterError:
        actual = repr(self._next.text) if self._next.text else "the end"
        return FilterError(f"Character {self._next.at + 1}: {expected} is expected, not {actual}.")


def _compile_operand(token: Token) -> Callable[[Facts], list[Any]]:
    """The values of a record that an operand names: none, one or several; None is null."""
    root = re.match(r"[a-z]*", token.text)
    name = root[0] if root else ""
    rest = token.text[len(name) :]
    steps = _parse_path(rest, token)
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


def _parse_path(path: str, token: Token) -> list[str | int]:
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


def _parse_literal(token: Token, *, moment: bool) -> Literal:
    text = _unquote(token.text) if token.kind == "text" else token.text
    if token.kind == "word":
        constants = {"true": True, "false": False, "null": None}
        if text.lower() in constants:
            return Literal(text, constants[text.lower()])
        number = _parse_number(text)
        if number is not None:
            return Literal(text, number)
    if moment:
        at = _parse_moment(text, token)
        return Literal(f"{at:f}", at)
    return Literal(text, text)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _parse_moment(text: str, token: Token) -> Decimal:
    """Unix milliseconds of an ISO 8601 moment, which is UTC without a zone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"Character {token.at + 1}: {text!r} is no moment, as 2026-11-21T15:00:00Z."
        raise FilterError(message) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    microseconds = (moment - EPOCH) // timedelta(microseconds=1)
    return Decimal(microseconds).scaleb(-3).normalize()


def _parse_number(text: str) -> Decimal | None:
    """The exact number of a text; None where it is no number, or too long."""
    if len(text) > NUMBER_CHARS_MAX or not NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _compile_comparison(
    candidates: Callable[[Facts], list[Any]], operator: str, literal: Literal
) -> Condition:
    if operator in NEGATED:
        positive = _compile_comparison(candidates, NEGATED[operator], literal)
        return lambda facts: not positive(facts)
    meant = literal.value
    if meant is None:
        if operator != "=":
            message = "null can only be compared by = and !=."
            raise FilterError(message)
        return lambda facts: all(value is None for value in candidates(facts))
    if operator == "~":
        part = literal.text.casefold()
        return lambda facts: any(
            part in _as_text(value).casefold() for value in candidates(facts) if value is not None
        )
    return lambda facts: any(_is_true_of(value, operator, meant) for value in candidates(facts))


def _as_text(value: Any) -> str:  # noqa: ANN401 (JSON)
    """A text itself; else its JSON on one line, with numbers as they are written in the record."""
    if isinstance(value, str):
        return value
    parts: list[str] = []
    # Not recursive, because a record may be nested to any depth.
    unwritten = [_leaf_text(value)]
    while unwritten:
        piece = unwritten.pop()
        if isinstance(piece, str):
            parts.append(piece)
        elif piece:
            unwritten += reversed(_container_pieces(piece))
        else:
            parts.append("{}" if isinstance(piece, dict) else "[]")
    return "".join(parts)


def _leaf_text(value: Any) -> str | list[Any] | dict[str, Any]:  # noqa: ANN401 (JSON)
    """The JSON text of a value that holds no others; a list or an object is returned as it is."""
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, list | dict) else AS_JSON(value)


def _container_pieces(value: list[Any] | dict[str, Any]) -> list[str | list[Any] | dict[str, Any]]:
    """The pieces of JSON of a list or an object that is not empty: texts, and nested containers."""
    pieces: list[str | list[Any] | dict[str, Any]] = []
    if isinstance(value, list):
        for item in value:
            pieces += [", ", _leaf_text(item)]
        return ["[", *pieces[1:], "]"]
    for name, item in value.items():
        pieces += [", ", f"{AS_JSON(name)}: ", _leaf_text(item)]
    return ["{", *pieces[1:], "}"]


def _is_true_of(
    value: Any,  # noqa: ANN401 (JSON)
    operator: str,
    expected: str | Decimal | bool,
) -> bool:
    """Compares values of one type: truth values, numbers (also written as a text), or texts."""
    if isinstance(expected, bool):
        return operator == "=" and (value is expected or value == AS_JSON(expected))
    if isinstance(expected, Decimal):
        number = _number_of(value)
        return number is not None and _compare_values(number, operator, expected)
    return isinstance(value, str) and _compare_values(value, operator, expected)


def _number_of(value: Any) -> Decimal | None:  # noqa: ANN401 (JSON)
    if isinstance(value, bytes):
        return _parse_number(value.decode())
    if isinstance(value, str):
        return _parse_number(value)
    # An integer is a partition, an offset or a timestamp.
    is_place = isinstance(value, int) and not isinstance(value, bool)
    return Decimal(value) if is_place else None


def _compare_values(one: Any, operator: str, other: Any) -> bool:  # noqa: ANN401 (of one type)
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
