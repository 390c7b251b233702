"""A call, and what came of it: as values, and as the text that goes through the queue."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from console.base.outbound.errors import CallError

BODY = "body_base64"


@dataclass(frozen=True, slots=True)
class Call:
    """A request to an address that a tenant chose, as it is asked for.

    `timeout_s` is for all of it: resolving, connecting, TLS, sending, and the last byte of the
    answer. `max_bytes` is for the answer's body.
    """

    url: str
    method: str = "GET"
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 10.0
    max_bytes: int = 64 * 1024

    def to_text(self) -> str:
        """Returns the call as JSON."""
        return _to_text(asdict(self), self.body)

    @classmethod
    def from_text(cls, text: str) -> Call:
        """Reads what `to_text` wrote. Raises `ValueError`, `TypeError` or `KeyError`."""
        return cls(**_from_text(text))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the host answered: names of headers in lower case, and the body as it was sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def succeeded(self) -> bool:
        """Whether the status is of the kind 2xx."""
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call: the host's answer, or the code and text of a `CallError`.

    `retry` says of a failure whether the same call may succeed later.
    """

    answer: Answer | None = None
    code: str = ""
    detail: str = ""
    retry: bool = False

    @classmethod
    def of_error(cls, error: CallError) -> Outcome:
        """Returns the outcome of a call that failed."""
        return cls(code=error.code, detail=error.detail, retry=error.retry)

    def to_text(self) -> str:
        """Returns the outcome as JSON."""
        if self.answer is None:
            return _to_text(asdict(self), b"")
        return _to_text(asdict(self.answer), self.answer.body)

    @classmethod
    def from_text(cls, text: str) -> Outcome:
        """Reads what `to_text` wrote. Raises `ValueError`, `TypeError` or `KeyError`."""
        values = _from_text(text)
        if "status" not in values:
            del values["body"]
            return cls(**values)
        answer = Answer(**values)
        headers = tuple((name, value) for name, value in answer.headers)
        return cls(replace(answer, headers=headers))


def _to_text(values: dict[str, object], body: bytes) -> str:
    values.pop("body", None)
    return json.dumps({**values, BODY: b64encode(body).decode("ascii")})


def _from_text(text: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(text)
    values["body"] = b64decode(values.pop(BODY))
    return values
