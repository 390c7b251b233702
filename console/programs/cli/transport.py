"""HTTP/1.1 over the standard library: what starts fast, with proxies and certificates of the
machine."""

from __future__ import annotations

import contextlib
import http.client
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from console.programs.cli.errors import CommandError

# Longer than any answer is waited for at the service: operations for a minute.
TIMEOUT_S = 100.0
CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `target` is the path with its query."""

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


class Reply(Protocol):
    """An answer whose body is still to be read."""

    @property
    def status(self) -> int:
        """HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """By their names in lower case; several of one name are lines."""

    def read(self) -> bytes:
        """All of the body. Raises `Lost`."""

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives. Raises `Lost`."""


class Transport(Protocol):
    """Something that answers requests."""

    def open(self, request: Request) -> contextlib.AbstractContextManager[Reply]:
        """Sends a request; the answer can be read within. Raises `Lost`."""

    def close(self) -> None:
        """Lets go of connections."""


class Lost(Exception):
    """No answer came, or not all of it: whether the request was served is unknown."""


@dataclass(slots=True)
class HttpReply:
    """An answer of a server's."""

    _response: http.client.HTTPResponse

    @property
    def status(self) -> int:
        """HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """By their names in lower case; several of one name are lines."""
        found: dict[str, str] = {}
        for name, value in self._response.getheaders():
            known = found.get(name.lower())
            found[name.lower()] = value if known is None else f"{known}\n{value}"
        return found

    def read(self) -> bytes:
        """All of the body. Raises `Lost`."""
        with losing():
            return self._response.read()

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives. Raises `Lost`."""
        while True:
            with losing():
                chunk = self._response.read1(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk


@contextlib.contextmanager
def losing() -> Iterator[None]:
    """What goes wrong on the way, as `Lost`."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        message = f"The server's certificate is not trusted: {error.verify_message}."
        raise CommandError(
            message, advice="SSL_CERT_FILE names a file of authorities that you trust."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise Lost(str(error) or type(error).__name__) from error


class HttpTransport:
    """One server, over a connection that stays open between requests. Follows no redirects: the key
    goes to nobody but whom it was meant for."""

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url = parse_url(url)
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[HttpReply]:
        """Sends a request; the answer can be read within. Raises `Lost`."""
        kept = self._connection or self._connect()
        self._connection = None
        complete = False
        try:
            with losing():
                kept.request(request.method, request.target, request.body, dict(request.headers))
                response = kept.getresponse()
            yield HttpReply(response)
            complete = response.isclosed() and not response.will_close
        finally:
            # What was left unread would be taken for the next answer.
            if complete:
                self._connection = kept
            else:
                kept.close()

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _connect(self) -> http.client.HTTPConnection:
        secure = self._url.scheme == "https"
        host, port = self._url.hostname or "", self._url.port
        proxy = None if proxy_bypass(host) else getproxies().get(self._url.scheme)
        through = parse_url(proxy if "://" in proxy else f"http://{proxy}") if proxy else None
        at_host, at_port = (through.hostname or "", through.port) if through else (host, port)
        if secure:
            context = ssl.create_default_context()
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                at_host, at_port, timeout=self._timeout_s, context=context
            )
        else:
            connection = http.client.HTTPConnection(at_host, at_port, timeout=self._timeout_s)
        if through:
            connection.set_tunnel(host, port)
        return connection


def parse_url(url: str) -> SplitResult:
    """The parts of an address. Raises CommandError for what is none."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise CommandError(
            f"{url!r} is no address of Freshet.",
            advice="It looks like https://freshet.example.com, or http://localhost:8080.",
        )
    return parts
