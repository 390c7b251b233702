"""Calls an address that a tenant chose: the only place of the control plane that does.

The name is resolved once, every address that it has is judged, and the connection goes to one of
these; the name itself is only what TLS and the header `Host` say. Nothing is followed, decompressed
or remembered, and no variable of the environment names a proxy.
"""

from __future__ import annotations

import logging
import re
import ssl
from dataclasses import dataclass, field
from functools import cache
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

import certifi
import httpcore

from console.base.outbound.addresses import Address, Network, is_loopback, why_refused
from console.base.outbound.deadlines import Deadline
from console.base.outbound.errors import (
    AddressNotPublic,
    AnswerInvalid,
    ConnectionFailed,
    Redirected,
    RequestInvalid,
)
from console.base.outbound.messages import Answer, Call
from console.base.outbound.names import AddressBook
from console.base.outbound.streams import Allowance, JudgedAddresses
from console.base.outbound.targets import LOCALHOST, Target, parse_target

logger = logging.getLogger(__name__)

METHODS = frozenset({"GET", "POST"})
TIMEOUT_S_MAX = 30.0
ANSWER_BYTES_MAX = 1024 * 1024
BODY_BYTES_MAX = 256 * 1024
# Of the answer's head, with heads of informational answers before it.
HEAD_BYTES_MAX = 32 * 1024
HEADERS_MAX = 30
HEADER_CHARS_MAX = 4096
# The connection has at most so many bytes for one of the body: a host may send chunks of one byte.
FRAMING = 8
# What the component itself says, or what would change how the request is read.
OWN_HEADERS = frozenset({
    "accept-encoding", "connection", "content-length", "cookie", "expect", "host", "keep-alive",
    "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip
HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
HEADER_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")
USER_AGENT = "Freshet"
LOOPBACK_ADDRESSES = (IPv4Address("127.0.0.1"), IPv6Address("::1"))
HTTP_VERSIONS = (b"HTTP/1.0", b"HTTP/1.1")
REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class CallRules:
    """Where calls may go, the same for all calls of a process.

    `local`: this machine may be called too, without TLS and on any port. `refused`: networks that
    are refused besides those that are not public. `authorities`: a file of certificates in PEM in
    the place of the public authorities.
    """

    local: bool = False
    refused: tuple[Network, ...] = ()
    names: AddressBook = field(default_factory=AddressBook)
    authorities: Path | None = None


def fetch(call: Call, rules: CallRules) -> Answer:
    """Makes one request and returns the answer, whatever its status, except redirects.

    Raises a `CallError`, whose class says why there is no answer.
    """
    own_headers = _check_call(call)
    deadline = Deadline(call.timeout_s)
    target = parse_target(call.url, local=rules.local)
    addresses = _judged_addresses(target, rules, deadline)
    allowance = Allowance("The head of the answer", HEAD_BYTES_MAX)
    network = JudgedAddresses(addresses, deadline, allowance)
    request = httpcore.Request(
        call.method,
        _url_of(target),
        headers=[("Host", target.authority), *own_headers],
        content=call.body,
    )
    connection = httpcore.HTTPConnection(
        request.url.origin,
        ssl_context=_tls_context(rules.authorities),
        network_backend=network,
    )
    try:
        response = connection.handle_request(request)
        return _read_answer(response, allowance, call.max_bytes)
    except httpcore.RemoteProtocolError as error:
        if network.ended:
            raise ConnectionFailed(
                "The host closed the connection before the whole answer was there."
            ) from error
        raise AnswerInvalid(
            "What the host sent is not an answer of HTTP/1.1. Check host and port."
        ) from error
    finally:
        network.close()


def _check_call(call: Call) -> list[tuple[str, str]]:
    """Checks a call and returns its headers, but `Host`. Raises `RequestInvalid`."""
    if call.method not in METHODS:
        raise RequestInvalid(f"The method must be {' or '.join(sorted(METHODS))}.")
    if len(call.body) > BODY_BYTES_MAX:
        raise RequestInvalid(f"The body is larger than {BODY_BYTES_MAX} bytes.")
    if not 0 < call.timeout_s <= TIMEOUT_S_MAX:
        raise RequestInvalid(f"The time must be above 0 and at most {TIMEOUT_S_MAX:g} s.")
    if not 0 <= call.max_bytes <= ANSWER_BYTES_MAX:
        raise RequestInvalid(f"The answer may have from 0 to {ANSWER_BYTES_MAX} bytes.")
    if len(call.headers) > HEADERS_MAX:
        raise RequestInvalid(f"A request has at most {HEADERS_MAX} headers of its own.")
    for name, value in call.headers.items():
        _check_header(name, value)
    own = [("User-Agent", USER_AGENT), ("Accept-Encoding", "identity"), ("Connection", "close")]
    if call.method != "GET":
        own.append(("Content-Length", str(len(call.body))))
    elif call.body:
        raise RequestInvalid("A GET has no body.")
    return [*own, *call.headers.items()]


def _check_header(name: str, value: str) -> None:
    if not HEADER_NAME.fullmatch(name):
        raise RequestInvalid(f"{name[:100]!r} is not the name of a header.")
    if name.lower() in OWN_HEADERS or name.lower().startswith("proxy-"):
        raise RequestInvalid(f"The header {name} is the service's own.")
    if len(value) > HEADER_CHARS_MAX or not HEADER_VALUE.fullmatch(value):
        raise RequestInvalid(
            f"The header {name} has a value that is not printable ASCII, or longer than"
            f" {HEADER_CHARS_MAX} characters."
        )


def _judged_addresses(target: Target, rules: CallRules, deadline: Deadline) -> list[Address]:
    """Returns the addresses of the host, all of which may be called.

    Raises `AddressNotPublic` if it has none, or if a single one may not be called.
    """
    if target.literal is not None:
        addresses: list[Address] = [target.literal]
    elif target.host == LOCALHOST:  # only local rules let it come here
        addresses = list(LOOPBACK_ADDRESSES)
    else:
        addresses = rules.names.addresses_of(target.host, deadline)
    for address in addresses:
        if rules.local and target.is_local and is_loopback(address):
            continue
        if reason := why_refused(address, others=rules.refused):
            # Only the log has address and reason, which tell about the service's own network.
            logger.info("outbound.refused host=%s address=%s: %s", target.host, address, reason)
            raise _not_public(target)
    if not addresses:
        raise _not_public(target)
    return addresses


def _not_public(target: Target) -> AddressNotPublic:
    return AddressNotPublic(
        f"{target.host} has no address, or one that is not of the public internet. Use a host that"
        " is reached from everywhere."
    )


def _url_of(target: Target) -> httpcore.URL:
    return httpcore.URL(
        scheme=target.scheme.encode("ascii"),
        host=target.host.encode("ascii"),
        port=target.port,
        target=target.path.encode("ascii"),
    )


@cache
def _tls_context(authorities: Path | None) -> ssl.SSLContext:
    """Returns what TLS trusts: these authorities, for the names in a certificate's own list."""
    context = ssl.create_default_context(cafile=str(authorities or certifi.where()))
    # A certificate's subject is no list of names, and no browser takes it for one.
    context.hostname_checks_common_name = False
    return context


def _read_answer(response: httpcore.Response, allowance: Allowance, max_bytes: int) -> Answer:
    """Reads the body of an answer whose head is there. Raises `CallError`."""
    headers = tuple(
        (name.decode("latin-1").lower(), value.decode("latin-1"))
        for name, value in response.headers
    )
    by_name = dict(headers)
    if response.status == 101 or response.extensions["http_version"] not in HTTP_VERSIONS:
        raise AnswerInvalid("The host answered in another protocol than HTTP/1.1.")
    if response.status in REDIRECTS:
        location = by_name.get("location", "")[:200]
        raise Redirected(
            f"The host answered with status {response.status} and another address ({location})."
            " Give the address that is meant: redirects are not followed."
        )
    allowance.begin("The body of the answer", max_bytes, max_bytes * FRAMING + HEAD_BYTES_MAX)
    if int(by_name.get("content-length", "0")) > max_bytes:
        raise allowance.exceeded()
    body = bytearray()
    for part in response.iter_stream():
        body += part
        if len(body) > max_bytes:
            raise allowance.exceeded()
    return Answer(response.status, headers, bytes(body))
