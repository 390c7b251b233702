"""Stripe's search queries: `metadata['invoice']:'inv_1' AND status:'succeeded'`. Pure.

`:` is equal, `~` contains, `<`, `<=`, `>`, `>=` compare numbers, `-` negates; clauses are joined
by AND or by OR, never by both.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable

from console.programs.stripe_fake.errors import Json, ParameterError

# What can be searched, beside metadata.
FIELDS = {
    "customer": ("created", "email", "name", "phone"),
    "payment_intent": ("amount", "created", "currency", "customer", "status"),
    "charge": ("amount", "created", "currency", "customer", "disputed", "refunded", "status"),
}
_CLAUSE = re.compile(
    r"""(?P<not>-?)(?P<field>\w+)(?:\[(?P<q>['"])(?P<key>[^'"]*)(?P=q)\])?\s*
        (?P<sign>:|~|<=|>=|<|>)\s*(?P<value>'(?:\\.|[^'])*'|"(?:\\.|[^"])*"|[\w.-]+)""",
    re.VERBOSE,
)
_JOIN = re.compile(r"\s+(AND|OR)\s+")


def matching(objects: Iterable[Json], kind: str, query: str) -> list[Json]:
    """Returns the objects that a query names; raises `ParameterError` where it cannot be read."""
    tests, joins, position = [], set(), 0
    text = query.strip()
    while True:
        clause = _CLAUSE.match(text, position)
        if clause is None:
            raise _unreadable(query)
        tests.append(_test_of(clause, kind))
        if clause.end() == len(text):
            break
        join = _JOIN.match(text, clause.end())
        if join is None:
            raise _unreadable(query)
        joins.add(join.group(1))
        position = join.end()
    if len(joins) > 1:
        raise ParameterError("A query cannot combine AND and OR.", param="query")
    holds = any if joins == {"OR"} else all
    return [body for body in objects if holds(test(body) for test in tests)]


def _unreadable(query: str) -> ParameterError:
    return ParameterError(f"We were unable to parse your search query: {query}", param="query")


def _test_of(clause: re.Match[str], kind: str) -> Callable[[Json], bool]:
    name, key, sign = clause["field"], clause["key"], clause["sign"]
    if name != "metadata" and name not in FIELDS[kind]:
        raise ParameterError(f"Field `{name}` is an unsupported search field.", param="query")
    value = clause["value"]
    if value[0] in "'\"":
        value = re.sub(r"\\(.)", r"\1", value[1:-1])

    def compare(body: Json) -> bool:
        actual = body["metadata"].get(key) if name == "metadata" else body.get(name)
        if actual is None:
            return False
        if sign in {":", "~"}:
            text = str(actual).lower() if isinstance(actual, bool) else str(actual)
            same = text.lower() == value.lower()
            return same if sign == ":" else value.lower() in text.lower()
        number, bound = float(actual), float(value)
        return {
            "<": number < bound,
            "<=": number <= bound,
            ">": number > bound,
            ">=": number >= bound,
        }[sign]

    return (lambda body: not compare(body)) if clause["not"] else compare


def search_page(objects: list[Json], params: Json, url: str) -> Json:
    """Returns one page of what was searched; `next_page` asks for the one after it."""
    limit = min(params.get("limit", 10), 100)
    start = _page_start(params["page"]) if "page" in params else 0
    more = len(objects) > start + limit
    following = base64.urlsafe_b64encode(str(start + limit).encode()).decode()
    return {
        "object": "search_result",
        "data": objects[start : start + limit],
        "has_more": more,
        "next_page": following if more else None,
        "url": url,
    }


def _page_start(page: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(page))
    except ValueError:
        raise ParameterError("Invalid page", param="page") from None
