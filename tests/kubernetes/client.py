"""A client of the API server for tests and the stand-in kubelet, with one connection per thread.

It does not share code with the driver's client, so that the tested code does not check itself.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

TIMEOUT_S = 60.0
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Answer(NamedTuple):
    """The answer to a request: its HTTP status and its JSON document."""

    status: int
    document: dict[str, Any]

    @property
    def message(self) -> str:
        """The message of a refusal."""
        return str(self.document.get("message", ""))


class Client:
    """Uses a kubeconfig of `ControlPlane`. Sends `headers` (as `Impersonate-User`) each time."""

    def __init__(self, kubeconfig: Path, headers: Mapping[str, str] | None = None) -> None:
        document = json.loads(kubeconfig.read_text())
        cluster = document["clusters"][0]["cluster"]
        self._server = urlsplit(cluster["server"])
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        token = document["users"][0]["user"]["token"]
        self._headers = {"Authorization": f"Bearer {token}", **(headers or {})}
        self._own = threading.local()
        self._connections: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Closes the connections of all threads."""
        for connection in self._connections:
            connection.close()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        kind: str = "application/json",
        **query: str,
    ) -> Answer:
        """Makes a request. `path` begins with `/api`. Raises `OSError` where no answer came."""
        connection = self._connection()
        headers = {**self._headers, "Content-Type": kind}
        target = f"{path}?{urlencode(query)}" if query else path
        data = None if body is None else json.dumps(body)
        # The server may have closed a connection that was idle for long, so one retry is allowed.
        if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()
        try:
            connection.request(method, target, data, headers)
            response = connection.getresponse()
            return Answer(response.status, json.loads(response.read() or b"{}"))
        except http.client.HTTPException as error:
            connection.close()
            raise OSError(str(error)) from error
        except OSError:
            # The next request opens a new connection.
            connection.close()
            raise

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Reads an object, or a list of objects."""
        answer = self.ask("GET", path, **query)
        assert answer.status == http.client.OK, answer
        return answer.document

    def patch(self, path: str, change: object) -> Answer:
        """Applies a merge patch."""
        return self.ask("PATCH", path, change, kind=MERGE)

    def apply(self, path: str, manifest: object, manager: str = "tests") -> Answer:
        """Applies an object with server-side apply."""
        return self.ask("PATCH", path, manifest, kind=APPLY, fieldManager=manager, force="true")

    def watch(self, path: str, version: str) -> Watch:
        """Watches the changes after a version, until the watch is closed."""
        connection = self._connect(None)
        query = urlencode({"watch": "true", "resourceVersion": version})
        connection.request("GET", f"{path}?{query}", headers=self._headers)
        return Watch(connection)

    def _connection(self) -> http.client.HTTPSConnection:
        if not hasattr(self._own, "connection"):
            self._own.connection = self._connect(TIMEOUT_S)
        connection: http.client.HTTPSConnection = self._own.connection
        return connection

    def _connect(self, timeout_s: float | None) -> http.client.HTTPSConnection:
        connection = http.client.HTTPSConnection(
            str(self._server.hostname),
            self._server.port,
            context=self._context,
            timeout=timeout_s,
        )
        self._connections.append(connection)
        return connection


class Watch:
    """The events of a watch, as `{"type": …, "object": …}`. Any thread may end it with `close`."""

    def __init__(self, connection: http.client.HTTPSConnection) -> None:
        self._socket = connection.sock
        self._response = connection.getresponse()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yields events until the watch is closed, here or by the server."""
        with (
            contextlib.closing(self._response),
            contextlib.suppress(OSError, ValueError, http.client.HTTPException),
        ):
            while line := self._response.readline():
                yield json.loads(line)

    def close(self) -> None:
        """Ends the watch for the thread that reads it."""
        with contextlib.suppress(OSError):
            # Shuts down the socket below TLS, so that a blocked read returns.
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
