"""The REST interface: requests that are repeated where that is safe, pages, problems."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from console.programs.cli.errors import Refused, Unreachable
from console.programs.cli.transport import Lost, Reply, Request, Transport

PREFIX = "/api/v1"
ATTEMPTS_MAX = 6
PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 8.0
# A service that asks to wait for longer than this is left alone.
RETRY_AFTER_MAX_S = 60.0
PAGE_ITEMS = 200

# Worth repeating: nothing was done, or the repeated request is known by its Idempotency-Key.
_REPEATED_STATUSES = {429, 502, 503, 504}
_REPEATED_CODES = {"idempotency_request_in_progress", "cluster_starting"}
# Asking again changes nothing about these.
_FINAL_CODES = {"limit_reached", "too_many_streams"}

# Names that would be taken for steps in a path: the API takes them with one `~` more.
_DOTS = re.compile(r"~*\.{1,2}")

Query = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: its status, headers by lower-case name, and body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """The body, decoded; None without one."""
        if not self.content:
            return None
        try:
            return json.loads(self.content)
        except ValueError as error:
            raise Unreachable("What answered is not Freshet: it sent no JSON.") from error


@dataclass(slots=True)
class Client:
    """Calls `/api/v1` with an API key. `root`: path of the service on its host, mostly empty."""

    transport: Transport
    key: str = ""
    root: str = ""
    # What else goes with every request: cookies, while somebody signs in.
    headers: dict[str, str] = field(default_factory=dict)
    pause: Callable[[float], None] = time.sleep

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        repeat: bool = True,
    ) -> Answer:
        """One request, repeated while it is lost or the service is busy.

        `repeat`: False for what the service would do twice. Raises `Refused`, `Unreachable`.
        """
        request = self.request(method, path, query=query, body=body)
        lost_before = False
        for attempt in range(ATTEMPTS_MAX):
            last = attempt == ATTEMPTS_MAX - 1 or not repeat
            try:
                with self.transport.open(request) as reply:
                    answer = Answer(reply.status, reply.headers, reply.read())
            except Lost as lost:
                if last:
                    raise self._unreachable(lost) from lost
                lost_before = True
                self.pause(_pause_s(attempt))
                continue
            if 200 <= answer.status < 300:
                return answer
            if method == "DELETE" and answer.status == 404 and lost_before:
                return Answer(204, answer.headers, b"")  # the lost request had deleted it
            refused = refusal(answer)
            wait_s = _retry_after_s(answer)
            if last or not _is_repeated(refused) or (wait_s or 0) > RETRY_AFTER_MAX_S:
                raise refused
            self.pause(wait_s if wait_s is not None else _pause_s(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def get(self, path: str, **query: object) -> Any:
        """GET, decoded."""
        return self.call("GET", path, query=query).json()

    def pages(
        self, path: str, query: Query | None = None, *, items_max: int = 0
    ) -> tuple[list[dict[str, Any]], str | None]:
        """The items of a list from all of its pages, at most `items_max` (0: all).

        Beside them the cursor where it goes on: None where all was read.
        """
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            wanted = min(PAGE_ITEMS, items_max - len(found)) if items_max else PAGE_ITEMS
            given = {**(query or {}), "limit": wanted} | ({"cursor": cursor} if cursor else {})
            page = self.call("GET", path, query=given).json()
            found += page["items"]
            cursor = page.get("next_cursor")
            if not cursor or (items_max and len(found) >= items_max):
                return found, cursor

    @contextmanager
    def stream(
        self, path: str, *, query: Query | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Reply]:
        """A GET whose body is read as it arrives. Never repeated. Raises `Refused`, `Lost`."""
        request = self.request("GET", path, query=query, headers=headers)
        with self.transport.open(request) as reply:
            if not 200 <= reply.status < 300:
                raise refusal(Answer(reply.status, reply.headers, reply.read()))
            yield reply

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Request:
        """The request as it is sent: every POST has an Idempotency-Key of its own."""
        given = {"Accept": "*/*", "User-Agent": "freshet-cli", **self.headers, **(headers or {})}
        if self.key:
            given["Authorization"] = f"Bearer {self.key}"
        if method == "POST":
            given["Idempotency-Key"] = str(uuid.uuid4())
        content = None
        if body is not None or method in {"POST", "PUT", "PATCH"}:
            given["Content-Type"] = "application/json"
            content = json.dumps({} if body is None else body).encode()
        pairs = [(name, _text(value)) for name, value in (query or {}).items() if value is not None]
        target = self.root + PREFIX + path + (f"?{urlencode(pairs)}" if pairs else "")
        return Request(method, target, given, content)

    def _unreachable(self, lost: Lost) -> Unreachable:
        return Unreachable(f"Freshet does not answer: {lost}.")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pause_s(attempt: int) -> float:
    """Twice as long each time, a random part of it: many that were refused at once spread out."""
    longest: float = min(PAUSE_FIRST_S * 2**attempt, PAUSE_MAX_S)
    return longest * (1 + random.random()) / 2  # noqa: S311 - no secret


def _retry_after_s(answer: Answer) -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def _is_repeated(refused: Refused) -> bool:
    if refused.problem_code in _FINAL_CODES:
        return False
    return refused.status in _REPEATED_STATUSES or refused.problem_code in _REPEATED_CODES


def refusal(answer: Answer) -> Refused:
    """The problem that an answer describes. Raises `Unreachable` for what Freshet would not say."""
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "")
        message = f"The address answers with a redirect to {where or 'another one'}: use that."
        raise Unreachable(message)
    try:
        problem = json.loads(answer.content)
    except ValueError:
        problem = None
    if isinstance(problem, dict) and "code" in problem:
        return Refused(answer.status, problem)
    if answer.status in _REPEATED_STATUSES:  # of a proxy in front
        detail = f"Freshet does not work at the moment (HTTP status {answer.status})."
        return Refused(answer.status, {"detail": detail})
    raise Unreachable(f"What answered is not Freshet (HTTP status {answer.status}).")


def segment(value: object) -> str:
    """A value as one part of a path."""
    text = str(value)
    return quote(f"~{text}" if _DOTS.fullmatch(text) else text, safe="")
