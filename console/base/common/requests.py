"""An id for every request, which its answer (`X-Request-Id`), problem, logs and audit entries have.

An id that the caller sends is used if it is harmless, so that a request can be followed across
services. Tasks have the id of the request that enqueued them (`task_requests.py`), and so has work
on an operation, in whatever process it is done. This module also finds the caller's address.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.base.common.conf import config
from console.base.common.ids import new_id
from console.base.common.logs import NOTHING

HEADER = "X-Request-Id"
HARMLESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")

_current: ContextVar[str] = ContextVar("request_id", default=NOTHING)
_operation: ContextVar[str] = ContextVar("operation_id", default=NOTHING)


def current_request_id() -> str:
    """Returns the id of the request that is being served, or `-` outside of one."""
    return _current.get()


@contextmanager
def in_request(request_id: str, operation_id: str = NOTHING) -> Iterator[None]:
    """Sets the ids that logs, audit entries and enqueued tasks have within the block.

    A `request_id` that is not harmless is replaced by `-`.
    """
    request = _current.set(request_id if HARMLESS.fullmatch(request_id) else NOTHING)
    operation = _operation.set(operation_id)
    try:
        yield
    finally:
        _operation.reset(operation)
        _current.reset(request)


def client_address(request: HttpRequest) -> str:
    """Returns the address that a request came from; behind our proxy the one that the proxy saw.

    Returns `unknown` if the server did not say.
    """
    forwarded = request.headers.get("X-Forwarded-For", "")
    return address_of(forwarded, request.META.get("REMOTE_ADDR"))


def address_of(forwarded: str, peer: str | None) -> str:
    """Returns a client's address from the header `X-Forwarded-For` and the connection's other end.

    The header counts only behind our proxy.
    """
    if config().web.behind_proxy:
        # The last address is the proxy's own entry; a client may have sent those before it.
        address = _without_port(forwarded.rsplit(",", maxsplit=1)[-1].strip())
        if address:
            return address
    return str(peer or "unknown")


def scope_address(scope: Mapping[str, Any]) -> str:
    """As `client_address`, for a request of ASGI that Django has not seen."""
    forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
    peer = scope.get("client")
    return address_of(forwarded.decode("latin-1"), peer[0] if peer else None)


def _without_port(forwarded: str) -> str:
    """Returns the address in `address`, `address:port` or `[address]:port`; empty if there is none.

    Some proxies add the port, which differs by connection: with it no limit per address would hold.
    """
    bracketed = forwarded.startswith("[")
    if bracketed or forwarded.count(":") == 1:
        forwarded = forwarded[1:].partition("]")[0] if bracketed else forwarded.partition(":")[0]
    try:
        return str(ipaddress.ip_address(forwarded))
    except ValueError:
        return ""


def network_of(address: str) -> str:
    """Returns what limits count as one address: for IPv6 the /64 network that one customer has."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is None:
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed)


def is_loopback(address: str) -> bool:
    """Returns whether an address, or a network of `network_of`, is this machine's own."""
    try:
        return ipaddress.ip_network(address, strict=False).is_loopback
    except ValueError:
        return False


Handler = Callable[[HttpRequest], HttpResponseBase]


def request_id_middleware(get_response: Handler) -> Handler:
    """Sets the request's id before other middleware runs, and adds it to the answer."""

    def serve(request: HttpRequest) -> HttpResponseBase:
        request_id = _request_id(request)
        token = _current.set(request_id)
        try:
            response = get_response(request)
        finally:
            _current.reset(token)
        response.headers[HEADER] = request_id
        return response

    return serve


def _request_id(request: HttpRequest) -> str:
    """Returns the caller's id for the request if it is harmless, else a new one."""
    header = request.headers.get(HEADER, "")
    return header if HARMLESS.fullmatch(header) else new_id("req")


class RequestIdFilter(logging.Filter):
    """Adds `request_id` and `operation_id` to every log record."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Adds the ids; returns True, so that no record is dropped."""
        record.request_id = _current.get()
        record.operation_id = _operation.get()
        return True
