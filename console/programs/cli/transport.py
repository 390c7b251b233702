"""HTTP/1.1 by the standard library, which is imported quickly.

It uses the proxies and the certificates of the machine.
"""

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

# Longer than the service holds any request: those for operations up to a minute.
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
    """An answer whose body has yet to be read."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by lower-case name; several headers of one name are joined by line ends."""

    def read(self) -> bytes:
        """Returns the whole body. Raises `Lost`."""

    def chunks(self) -> Iterator[bytes]:
        """Yields the body as it arrives. Raises `Lost`."""


class Transport(Protocol):
    """Sends requests to one server."""

    def open(self, request: Request) -> contextlib.AbstractContextManager[Reply]:
        """Sends a request; its answer can be read while this is open. Raises `Lost`."""

    def close(self) -> None:
        """Closes the connections."""


class Lost(Exception):
    """No answer came, or only a part of it: it is unknown whether the request was carried out."""


@dataclass(slots=True)
class HttpReply:
    """An answer of an HTTP server; implements `Reply`."""

    _response: http.client.HTTPResponse

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers by lower-case name; several headers of one name are joined by line ends."""
        headers: dict[str, str] = {}
        for name, value in self._response.getheaders():
            known = headers.get(name.lower())
            headers[name.lower()] = value if known is None else f"{known}\n{value}"
        return headers

    def read(self) -> bytes:
        """Returns the whole body. Raises `Lost`."""
        with raising_lost():
            return self._response.read()

    def chunks(self) -> Iterator[bytes]:
        """Yields the body as it arrives. Raises `Lost`."""
        while True:
            with raising_lost():
                chunk = self._response.read1(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk


@contextlib.contextmanager
def raising_lost() -> Iterator[None]:
    """Raises errors of the network as `Lost`.

    A certificate that is not trusted is raised as `CommandError`, as repeating would not help.
    """
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        message = f"The server's certificate is not trusted: {error.verify_message}."
        raise CommandError(
            message, advice="Name a file with the authorities that you trust by SSL_CERT_FILE."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise Lost(str(error) or type(error).__name__) from error


class HttpTransport:
    """Sends requests to one server, over a connection that stays open between them.

    It follows no redirects, so that the API key goes to no other server.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self._url = parse_url(url)
        self._timeout_s = timeout_s
        self._connection: http.client.HTTPConnection | None = None

    @contextlib.contextmanager
    def open(self, request: Request) -> Iterator[HttpReply]:
        """Sends a request; its answer can be read while this is open. Raises `Lost`."""
        connection = self._connection or self._connect()
        self._connection = None
        complete = False
        try:
            with raising_lost():
                connection.request(
                    request.method, request.target, request.body, dict(request.headers)
                )
                response = connection.getresponse()
            yield HttpReply(response)
            complete = response.isclosed() and not response.will_close
        finally:
            # The rest of an answer that was not read would be taken for the next answer.
            if complete:
                self._connection = connection
            else:
                connection.close()

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
    """Returns the parts of an address. Raises `CommandError` where it is not http or https."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise CommandError(
            f"{url!r} is no address of Freshet.",
            advice="An address looks like https://freshet.example.com or http://localhost:8080.",
        )
    return parts
