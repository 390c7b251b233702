"""One request to the API, from the key to the answer: faults and idempotency keys included.

A key's first answer is kept for 24 hours once its endpoint began, whether it succeeded or not: the
same request gets it again, another request with that key is refused, and one that comes while the
first still runs gets 409. An answer to parameters that were wrong is not kept.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from console.programs.stripe_fake.endpoints import Endpoint, EndpointCall, choose_endpoint, expanded
from console.programs.stripe_fake.errors import ApiError, CardDeclined, Json, ParameterError
from console.programs.stripe_fake.faults import AFTER, KEPT, choose_fault, fault_error, mask
from console.programs.stripe_fake.forms import decode_form, read_fields
from console.programs.stripe_fake.keys import API_VERSION, SECRET_KEY
from console.programs.stripe_fake.objects import (
    balance,
    charges,
    checkout,
    customers,
    disputes,
    events,
    payment_intents,
    payment_methods,
    portal,
    refunds,
    setup_intents,
)
from console.programs.stripe_fake.sandbox import Origin, Sandbox, visible
from console.programs.stripe_fake.store import KeptAnswer

ENDPOINTS: tuple[Endpoint, ...] = (
    *customers.ENDPOINTS, *payment_methods.ENDPOINTS, *setup_intents.ENDPOINTS,
    *checkout.ENDPOINTS, *payment_intents.ENDPOINTS, *charges.ENDPOINTS, *refunds.ENDPOINTS,
    *disputes.ENDPOINTS, *portal.ENDPOINTS, *balance.ENDPOINTS, *events.ENDPOINTS,
)  # fmt: skip
KEY_KEPT_S = 86_400
_KEY_CHARS_MAX = 255


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; the names of `headers` are lower case."""

    method: str
    path: str
    query: str
    body: bytes
    headers: Mapping[str, str]


@dataclass(slots=True)
class ApiReply:
    """An answer. `silent`: nothing is answered, and the caller waits (`timeout`) or loses its
    connection (`reset`). `kept`: whether it is kept for the request's idempotency key.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    silent: str = ""
    kept: bool = True


class Api:
    """Answers requests on a sandbox; its callers may be many threads.

    `wait`: waits that many seconds, or until the server stops.
    """

    def __init__(self, sandbox: Sandbox, wait: Callable[[float], object]) -> None:
        self._sandbox = sandbox
        self._wait = wait
        self._running: set[str] = set()
        self._running_lock = threading.Lock()

    def answer(self, request: ApiRequest) -> ApiReply:
        """Answers one request."""
        request_id = self._sandbox.make_id("req_", 14)
        headers = {"Request-Id": request_id, "Stripe-Version": API_VERSION}
        try:
            return self._answer(request, request_id, headers)
        except ApiError as error:
            return _error_reply(error, request_id, headers)

    def _answer(self, request: ApiRequest, request_id: str, headers: dict[str, str]) -> ApiReply:
        key = _check_key(request.headers)
        version = request.headers.get("stripe-version", API_VERSION)
        if version != API_VERSION:
            raise ApiError(400, f"Invalid Stripe API version: {version}")
        chosen = choose_endpoint(ENDPOINTS, request.method, request.path)
        if chosen is None:
            raise ApiError(404, f"Unrecognized request URL ({request.method}: {request.path}).")
        is_post = request.method == "POST"
        form = decode_form(request.body.decode(errors="replace") if is_post else request.query)
        idempotency_key = request.headers.get("idempotency-key") if is_post else None
        with self._own(idempotency_key):
            fault = self._use_fault(request)
            kind = "" if fault is None else str(fault["kind"])
            if kind in {"timeout", "reset"}:
                return ApiReply(silent=kind)
            if fault is not None and kind == "delay":
                self._wait(float(fault.get("seconds", 1)))
            error = fault_error(kind, key)
            if error is not None and kind not in AFTER | KEPT:
                raise error
            origin = Origin(request_id, idempotency_key)
            endpoint, ids = chosen
            reply = self._answer_once(endpoint, ids, form, origin, kind)
        reply.headers = headers | reply.headers
        if kind in {"timeout_after_commit", "reset_after_commit"}:
            reply.silent = kind.removesuffix("_after_commit")
        return reply

    @contextmanager
    def _own(self, key: str | None) -> Iterator[None]:
        """Lets one request at a time run with an idempotency key."""
        if key is None:
            yield
            return
        if not key or len(key) > _KEY_CHARS_MAX:
            raise ParameterError("Idempotency keys have from 1 to 255 characters.")
        with self._running_lock:
            if key in self._running:
                raise ApiError(
                    409,
                    "There is currently another in-progress request using this Idempotent Key"
                    " (that probably means you submitted twice, and the other request is still"
                    f" going through): {key}. If you are doing this on purpose, please use a"
                    " different key.",
                    kind="idempotency_error",
                    code="idempotency_key_in_use",
                )
            self._running.add(key)
        try:
            yield
        finally:
            with self._running_lock:
                self._running.discard(key)

    def _use_fault(self, request: ApiRequest) -> Json | None:
        with self._sandbox.turn():
            fault = choose_fault(self._sandbox.store.faults(), request.method, request.path)
            if fault is not None:
                self._sandbox.store.use_fault(fault)
            return fault

    def _answer_once(
        self, endpoint: Endpoint, ids: tuple[str, ...], form: Json, origin: Origin, fault: str
    ) -> ApiReply:
        """Does what is asked for, or answers what was answered to the idempotency key."""
        sandbox, key = self._sandbox, origin.idempotency_key
        request_id = origin.request_id or ""
        path = f"{endpoint.method} {endpoint.path.format(*ids)}"
        digest = hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()
        with sandbox.turn(origin):
            settle_due(sandbox)
            if key is not None:
                sandbox.store.forget_answers(sandbox.now() - KEY_KEPT_S)
                answer = sandbox.store.answer_to(key)
                if answer is not None:
                    return _replay(answer, path, digest, key)
            kept = fault_error(fault, "")
            if fault in KEPT and kept is not None:
                reply = _error_reply(kept, request_id, {})
            else:
                reply = self._execute(endpoint, ids, form, request_id)
                if fault in AFTER and kept is not None and reply.status < 300:
                    reply = _error_reply(kept, request_id, {})
            if key is not None and reply.kept:
                sandbox.store.keep_answer(
                    key,
                    KeptAnswer(
                        path, digest, reply.status, reply.body.decode(), request_id, sandbox.now()
                    ),
                )
        if key is not None:
            reply.headers["Idempotency-Key"] = key
        return reply

    def _execute(
        self, endpoint: Endpoint, ids: tuple[str, ...], form: Json, request_id: str
    ) -> ApiReply:
        try:
            with self._sandbox.store.savepoint():
                call = EndpointCall(self._sandbox, ids, read_fields(endpoint.fields, form))
                try:
                    body = endpoint.handle(call)
                except CardDeclined as error:  # what it did stays
                    return _error_reply(error, request_id, {})
                return _json_reply(200, visible_answer(expanded(call, body)))
        except ApiError as error:
            reply = _error_reply(error, request_id, {})
            reply.kept = not isinstance(error, ParameterError)
            return reply


def settle_due(sandbox: Sandbox) -> None:
    """Ends what the clock has ended: processing, pending refunds, open pages, disputes."""
    for body in sandbox.store.due(sandbox.now()):
        match body["object"]:
            case "payment_intent":
                payment_intents.end_processing(sandbox, body)
            case "refund":
                refunds.end_refund(sandbox, body)
            case "dispute":
                disputes.close_unanswered(sandbox, body)
            case "checkout.session":
                checkout.expire_session(sandbox, body)


def visible_answer(body: Json) -> Json:
    """Returns an answer without the fake's own members, also of the objects in a list."""
    if isinstance(body.get("data"), list):
        return {**visible(body), "data": [visible(item) for item in body["data"]]}
    return visible(body)


def _check_key(headers: Mapping[str, str]) -> str:
    """Returns the request's API key; raises `ApiError` (401) where it is not the account's."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            value = base64.b64decode(value, validate=True).decode().partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            value = ""
    if not value:
        raise ApiError(
            401,
            "You did not provide an API key. You need to provide your API key in the Authorization"
            " header, using Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').",
        )
    if not hmac.compare_digest(value.encode(), SECRET_KEY.encode()):
        raise ApiError(401, f"Invalid API Key provided: {mask(value)}")
    return value


def _replay(answer: KeptAnswer, path: str, digest: str, key: str) -> ApiReply:
    if answer.endpoint != path:
        raise ApiError(
            400,
            "Keys for idempotent requests can only be used for the same endpoint they were first"
            f" used for ('{path}' vs '{answer.endpoint}'). Try using a key other than '{key}' if"
            " you meant to execute a different request.",
            kind="idempotency_error",
        )
    if answer.digest != digest:
        raise ApiError(
            400,
            "Keys for idempotent requests can only be used with the same parameters they were"
            f" first used with. Try using a key other than '{key}' if you meant to execute a"
            " different request.",
            kind="idempotency_error",
        )
    headers = {
        "Content-Type": "application/json",
        "Idempotency-Key": key,
        "Idempotent-Replayed": "true",
        "Original-Request": answer.request_id,
    }
    if answer.status >= 500:
        headers["Stripe-Should-Retry"] = "false"
    return ApiReply(answer.status, answer.body.encode(), headers)


def _json_reply(status: int, body: Json) -> ApiReply:
    text = json.dumps(body, indent=2).encode()
    return ApiReply(status, text, {"Content-Type": "application/json"})


def _error_reply(error: ApiError, request_id: str, headers: dict[str, str]) -> ApiReply:
    reply = _json_reply(error.status, error.body(request_id))
    reply.headers = headers | reply.headers
    if error.should_retry is not None:
        reply.headers["Stripe-Should-Retry"] = str(error.should_retry).lower()
    return reply
