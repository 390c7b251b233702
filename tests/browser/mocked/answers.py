"""What a REST interface without a service answers: the examples of the OpenAPI description.

Each operation answers with the first example of its success. A few are made to fit the request or
hold more than one row; what is made is compared with the description like the examples are.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast

from jsonschema import Draft202012Validator

Json = dict[str, Any]
Query = dict[str, str]

DESCRIPTION = Path(__file__).parents[3] / "docs/reference/openapi.json"
METHODS = ("get", "post", "put", "patch", "delete")
# The present of the examples.
NOW = "2026-11-21T16:00:00Z"
# Ids that no example has: whoever asks for one gets 404.
ABSENT = re.compile("a{20}")
CLUSTER = "cl_3k2jq7v5xw4mzn6yt2ba"
GROUP = "billing"
INVOICE = "inv_3k2jq7v5xw4mzn6yt2ba"
TOPIC = "payments"
USAGE_ROW = "ur_4x7mzq2nk5vw3jt6ybac"


@dataclass(frozen=True)
class Request:
    """A call of the console: the method, the address and what stands behind its `?`."""

    method: str
    path: str
    query: Query = field(default_factory=dict)
    signed_in: bool = True


@dataclass(frozen=True)
class Answer:
    """A status, and the body as JSON has it; None for no body."""

    status: HTTPStatus
    body: Any = None


@dataclass(frozen=True)
class Operation:
    """An operation of the description."""

    method: str
    path: str
    described: Json

    @property
    def name(self) -> str:
        """Method and path, such as `GET /api/v1/clusters/{id}`."""
        return f"{self.method} {self.path}"

    @property
    def success(self) -> HTTPStatus:
        """The status of a success; of several, the one with an example, or the one without a body.

        The other one answers a request with `validate_only`.
        """
        statuses = [HTTPStatus(int(code)) for code in self.described["responses"] if code < "3"]
        return min(
            statuses,
            key=lambda status: (not self._examples(status), self.schema(status) is not None),
        )

    @property
    def example(self) -> Any:  # noqa: ANN401 - whatever JSON has
        """A copy of the first example of a success; None where it answers without a body."""
        first = next(iter(self._examples(self.success).values()), None)
        return copy.deepcopy(first["value"]) if first else None

    def schema(self, status: HTTPStatus) -> Json | None:
        """The schema of an answer's JSON; None where it has no body of JSON."""
        content = self.described["responses"][str(status.value)].get("content", {})
        return cast("Json | None", content.get("application/json", {}).get("schema"))

    def _examples(self, status: int) -> Json:
        content = self.described["responses"][str(int(status))].get("content", {})
        return cast("Json", content.get("application/json", {}).get("examples", {}))


@cache
def description() -> Json:
    """The OpenAPI description of this checkout."""
    return cast("Json", json.loads(DESCRIPTION.read_text()))


@cache
def operations() -> tuple[tuple[re.Pattern[str], Operation], ...]:
    """Every operation with the pattern of its addresses, the most literal first."""
    pairs = [
        (_pattern(path), Operation(method.upper(), path, item[method]))
        for path, item in description()["paths"].items()
        for method in METHODS
        if method in item
    ]
    return tuple(sorted(pairs, key=lambda pair: pair[1].path.count("{")))


def _pattern(path: str) -> re.Pattern[str]:
    """The pattern of a path's addresses. A part matches no colon, because a colon begins a verb."""
    parts = re.split(r"\{[^}]+\}", path)
    return re.compile("([^/:]+)".join(map(re.escape, parts)))


def operation_of(method: str, path: str) -> Operation | None:
    """The operation that serves a method at an address; None where none does."""
    return next(
        (one for pattern, one in operations() if one.method == method and pattern.fullmatch(path)),
        None,
    )


def complaints(operation: Operation, answer: Answer) -> Iterator[str]:
    """Lists how an answer differs from the description."""
    components = description()["components"]
    schema = (
        {"$ref": "#/components/schemas/Problem"}
        if answer.status >= HTTPStatus.BAD_REQUEST
        else operation.schema(answer.status)
    )
    if schema is None:
        if answer.body is not None:
            yield f"{operation.name}: answers without a body"
        return
    validator = Draft202012Validator({**schema, "components": components})
    for error in validator.iter_errors(answer.body):
        yield f"{operation.name}: {error.json_path}: {error.message}"


def answer_to(request: Request) -> Answer:
    """What is answered to a request. 501 for what the description does not have."""
    operation = operation_of(request.method, request.path)
    if operation is None:
        return problem(HTTPStatus.NOT_IMPLEMENTED, f"There is no {request.method} {request.path}.")
    if ABSENT.search(request.path):
        return problem(HTTPStatus.NOT_FOUND, "There is nothing at this address.")
    make = MADE.get(operation.name)
    body = operation.example if make is None else make(request, operation.example)
    return Answer(operation.success, body)


def problem(status: HTTPStatus, detail: str) -> Answer:
    """A refusal as a problem document."""
    body = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": detail,
        "code": status.phrase.lower().replace(" ", "_"),
        "request_id": "req_5v2jq7k3xw4mzn6yt2ba",
    }
    return Answer(status, body)


def _session(request: Request, example: Json) -> Json:
    """No session without the cookie; else the example's owner, who is staff too."""
    if not request.signed_in:
        return example | {"user": None, "organization": None, "organizations": []}
    example["user"]["is_staff"] = True
    return example


def _topic(request: Request, example: Json) -> Json:
    """The one topic comes with its configs, as the list's topics do not."""
    configs = {
        "retention.ms": ("604800000", "How long a record is kept at least, in milliseconds."),
        "cleanup.policy": ("delete", "What happens to old records: `delete`, `compact` or both."),
        "max.message.bytes": ("1048588", "The largest batch that is taken, in bytes."),
    }
    details = [
        {
            "name": name,
            "value": value,
            "default": value,
            "source": "DYNAMIC_TOPIC_CONFIG" if name == "retention.ms" else "DEFAULT_CONFIG",
            "is_default": name != "retention.ms",
            "type": "STRING",
            "documentation": documentation,
        }
        for name, (value, documentation) in configs.items()
    ]
    return example | {"config_details": details}


def _messages(request: Request, example: Json) -> Json:
    """Records of each kind: JSON, text, bytes, a tombstone, a number that no double holds."""
    (first,) = example["items"]
    shown = {
        "json": ('{"id":73314510714175489,"total":1.50}', "eyJpZCI6NzMzMTQ1MTA3MTQxNzU0ODl9"),
        "text": ("Hello from Freshet", "SGVsbG8gZnJvbSBGcmVzaGV0"),
        "bytes": (None, "/wD/AP8="),
    }
    values = [
        {"base64": encoded, "text": text, "size": 18, "truncated": False}
        for text, encoded in shown.values()
    ]
    items = [first | {"offset": str(42 + at), "value": value} for at, value in enumerate(values)]
    headers = [{"key": "id", "key_base64": "aWQ=", "value": first["value"]}]
    items.append(first | {"offset": "45", "key": first["value"], "value": None, "headers": headers})
    return example | {"items": [first, *items], "next_cursor": "more"}


def _usage(request: Request, example: Json) -> Json:
    """Rows of the range that is asked for, or sums of it, one for each meter and window."""
    (first,) = example["items"]
    begin = datetime.fromisoformat(request.query["from"])
    hour = timedelta(hours=1)
    meters = {"ingress_bytes": "byte", "egress_bytes": "byte", "broker_seconds": "second"}
    requested_meter = request.query.get("meter")
    summed = request.query.get("group_by", "none")
    items = []
    for at in range(3):
        window = {
            "window_start": _written(begin + at * hour),
            "window_end": _written(begin + (at + 1) * hour),
        }
        for meter, unit in meters.items():
            if requested_meter in {None, meter}:
                item = first | window | {"meter": meter, "unit": unit}
                items.append(item if summed == "none" else item | _summed(summed))
    return example | {"items": items}


def _summed(by: str) -> Json:
    """The members that a sum lacks: the row's id, and all by which it is not grouped."""
    kept = {"topic": ("topic_id", "topic"), "principal": ("principal",)}.get(by, ())
    return {name: None for name in ("id", "topic_id", "topic", "principal") if name not in kept}


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


# Operations that answer with more than their example, by name.
MADE: dict[str, Callable[[Request, Json], Json]] = {
    "GET /api/v1/session": _session,
    "GET /api/v1/clusters/{cluster_id}/topics/{name}": _topic,
    "GET /api/v1/clusters/{cluster_id}/topics/{name}/messages": _messages,
    "GET /api/v1/usage": _usage,
}
