"""The client of the REST interface: it repeats requests where that is safe, and reads pages."""

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
# Where the service asks to wait for longer than this, the request is not repeated.
RETRY_AFTER_MAX_S = 60.0
PAGE_ITEMS = 200

# A request with such an answer is repeated: either it did nothing, or the service recognises the
# repeated one by its Idempotency-Key.
_REPEATED_STATUSES = {429, 502, 503, 504}
_REPEATED_CODES = {"idempotency_request_in_progress", "cluster_starting"}
# A request with such a problem is not repeated: the answer would be the same.
_FINAL_CODES = {"limit_reached", "too_many_streams"}

# Names that a URL would take for steps in its path; the API expects them with one more `~` in
# front.
_DOTS = re.compile(r"~*\.{1,2}")

Query = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """A successful answer: its status, its headers by lower-case name, and its body."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> Any:
        """Returns the decoded body; None where there is none.

        Raises `Unreachable` for other bodies.
        """
        if not self.content:
            return None
        try:
            return json.loads(self.content)
        except ValueError as error:
            raise Unreachable("What answered is not Freshet: it sent no JSON.") from error


@dataclass(slots=True)
class Client:
    """Calls `/api/v1` with an API key.

    `root`: the path of the service on its host, mostly empty.
    """

    transport: Transport
    key: str = ""
    root: str = ""
    # Further headers of every request: cookies and a CSRF token, while somebody signs in.
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
    ) -> ApiAnswer:
        """Sends a request, repeats it while it is lost or the service is busy, returns the answer.

        `repeat`: False for a request that the service would carry out twice. Raises `Refused` where
        the service refuses it, and `Unreachable` where no usable answer comes.
        """
        request = self.request(method, path, query=query, body=body)
        lost_before = False
        for attempt in range(ATTEMPTS_MAX):
            last = attempt == ATTEMPTS_MAX - 1 or not repeat
            try:
                with self.transport.open(request) as reply:
                    answer = ApiAnswer(reply.status, reply.headers, reply.read())
            except Lost as lost:
                if last:
                    raise self._unreachable_error(lost) from lost
                lost_before = True
                self.pause(_pause_s(attempt))
                continue
            if 200 <= answer.status < 300:
                return answer
            if method == "DELETE" and answer.status == 404 and lost_before:
                return ApiAnswer(204, answer.headers, b"")  # the lost request had deleted it
            refused = refusal_of(answer)
            wait_s = _retry_after_s(answer)
            if last or not _is_repeated(refused) or (wait_s or 0) > RETRY_AFTER_MAX_S:
                raise refused
            self.pause(wait_s if wait_s is not None else _pause_s(attempt))
        raise AssertionError("unreachable: the last attempt returns or raises")

    def get(self, path: str, **query: object) -> Any:
        """Sends a GET; returns the decoded body. Raises `Refused`, `Unreachable`."""
        return self.call("GET", path, query=query).json()

    def pages(
        self, path: str, query: Query | None = None, *, items_max: int = 0
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Reads a list page by page: returns its items, and the cursor at which it goes on.

        `items_max`: the most items to read; 0 for all. The cursor is None where all were read.
        """
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            page_limit = min(PAGE_ITEMS, items_max - len(items)) if items_max else PAGE_ITEMS
            parameters = {**(query or {}), "limit": page_limit} | (
                {"cursor": cursor} if cursor else {}
            )
            page = self.call("GET", path, query=parameters).json()
            items += page["items"]
            cursor = page.get("next_cursor")
            if not cursor or (items_max and len(items) >= items_max):
                return items, cursor

    @contextmanager
    def stream(
        self, path: str, *, query: Query | None = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[Reply]:
        """Sends a GET whose body is read as it arrives; never repeats it.

        Raises `Refused`, `Lost`.
        """
        request = self.request("GET", path, query=query, headers=headers)
        with self.transport.open(request) as reply:
            if not 200 <= reply.status < 300:
                raise refusal_of(ApiAnswer(reply.status, reply.headers, reply.read()))
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
        """Returns the request as it is sent. Every POST gets an Idempotency-Key of its own."""
        sent_headers = {
            "Accept": "*/*",
            "User-Agent": "freshet-cli",
            **self.headers,
            **(headers or {}),
        }
        if self.key:
            sent_headers["Authorization"] = f"Bearer {self.key}"
        if method == "POST":
            sent_headers["Idempotency-Key"] = str(uuid.uuid4())
        content = None
        if body is not None or method in {"POST", "PUT", "PATCH"}:
            sent_headers["Content-Type"] = "application/json"
            content = json.dumps({} if body is None else body).encode()
        pairs = [
            (name, _query_text(value)) for name, value in (query or {}).items() if value is not None
        ]
        target = self.root + PREFIX + path + (f"?{urlencode(pairs)}" if pairs else "")
        return Request(method, target, sent_headers, content)

    def _unreachable_error(self, lost: Lost) -> Unreachable:
        return Unreachable(f"Freshet does not answer: {lost}.")


def _query_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pause_s(attempt: int) -> float:
    """Returns how long to pause before another attempt: twice as long after each one.

    A random part of it spreads out clients that were refused at the same moment.
    """
    longest: float = min(PAUSE_FIRST_S * 2**attempt, PAUSE_MAX_S)
    return longest * (1 + random.random()) / 2  # noqa: S311 - no secret


def _retry_after_s(answer: ApiAnswer) -> float | None:
    text = answer.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


def _is_repeated(refused: Refused) -> bool:
    if refused.problem_code in _FINAL_CODES:
        return False
    return refused.status in _REPEATED_STATUSES or refused.problem_code in _REPEATED_CODES


def refusal_of(answer: ApiAnswer) -> Refused:
    """Returns the problem that an answer describes.

    Raises `Unreachable` where the answer does not come from Freshet: a redirect, or no problem
    document.
    """
    if 300 <= answer.status < 400:
        where = answer.headers.get("location", "")
        message = f"The address redirects to {where or 'another one'}: use that address instead."
        raise Unreachable(message)
    try:
        problem = json.loads(answer.content)
    except ValueError:
        problem = None
    if isinstance(problem, dict) and "code" in problem:
        return Refused(answer.status, problem)
    if answer.status in _REPEATED_STATUSES:  # from a proxy in front of the service
        detail = f"Freshet does not work at the moment (HTTP status {answer.status})."
        return Refused(answer.status, {"detail": detail})
    raise Unreachable(f"What answered is not Freshet (HTTP status {answer.status}).")


def segment(value: object) -> str:
    """Returns a value quoted as one part of a URL's path."""
    text = str(value)
    return quote(f"~{text}" if _DOTS.fullmatch(text) else text, safe="")
