"""Pods without a broker that answer all the same what a keeper asks of one, at their addresses.

`python -m tests.bench.stand_in_brokers KUBECONFIG NODES SECRET METRICS_PORT KAFKA_PORT` has nodes
whose pods run as soon as they are bound. From then until its end a pod answers at an address of its
own in 127.0.0.0/8: `/status` reports no connection, and the Kafka port logs the service's own
user in, by SCRAM with its cluster's password, and lists no group. Nothing else is answered.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import hmac
import secrets
import struct
import sys
from pathlib import Path
from typing import Protocol

from brokers.secrets import read_cell_secret, super_password
from provisioning.cell.drivers.kubernetes.manifests import CLUSTER
from tests.kubernetes.client import Client
from tests.kubernetes.stand_in_kubelet import Marking, Pod, StandInKubelet

LOOPBACK_NETWORK = 127
# As many pods as a kubelet takes by default, on a machine of a usual size.
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}

METADATA, LIST_GROUPS, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 3, 16, 17, 18, 36
# By kind of request, the versions that are answered: those in which our own client asks.
VERSIONS = {
    METADATA: (12, 12),
    LIST_GROUPS: (5, 5),
    SASL_HANDSHAKE: (1, 1),
    API_VERSIONS: (0, 0),
    SASL_AUTHENTICATE: (0, 0),
}
UNSUPPORTED_VERSION, SASL_AUTHENTICATION_FAILED = 35, 58
MECHANISM, ITERATIONS = "SCRAM-SHA-512", 4096
SALT = b"of-all-stand-ins"
FRAME_BYTES_MAX = 65_536

# A request that is not answered, and ends its connection.
UNREADABLE = (
    *(OSError, EOFError, ValueError, LookupError),
    *(struct.error, asyncio.LimitOverrunError),
)

STATUS = b'{"v":1,"incarnation":1,"next":"1.0.0","connections":[0,0],"cpu_ms":0}'
PAGE = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(STATUS), STATUS)


class Brokers(Marking):
    """Marks pods as ready, and finds a pod's cluster by its address."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, LOOPBACK_NETWORK)
        self._clusters: dict[str, str] = {}

    def cluster_at(self, address: str) -> str | None:
        """See `Addresses`."""
        return self._clusters.get(address)

    def mark(self, pod: Pod, address: str) -> None:
        """Answers for a pod from before the pod is marked as ready."""
        self._clusters[address] = pod["metadata"]["labels"][CLUSTER]
        super().mark(pod, address)

    def end(self, pod: Pod) -> None:
        """Stops answering for a pod."""
        self._clusters.pop(pod["status"].get("podIP", ""), None)
        super().end(pod)


class Addresses(Protocol):
    """Finds the cluster of an address."""

    def cluster_at(self, address: str) -> str | None:
        """The cluster whose pod has an address; None where no pod has it."""


class Server:
    """Both ports of all pods. What is asked at an address that no pod has is not answered."""

    def __init__(self, brokers: Addresses, secret: bytes, kafka_port: int) -> None:
        self._brokers = brokers
        self._secret = secret
        self._kafka_port = kafka_port

    async def metrics(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests for the status over one connection."""
        try:
            while self._brokers.cluster_at(_address(writer)) is not None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(PAGE)
                await writer.drain()
        except UNREADABLE:
            return
        finally:
            writer.close()

    async def kafka(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of one connection, in order, until it cannot answer one."""
        try:
            await self._converse(reader, writer, _address(writer))
        except UNREADABLE:
            return
        finally:
            writer.close()

    async def _converse(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        login: Login | None = None
        while (cluster := self._brokers.cluster_at(address)) is not None:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if not 0 < size <= FRAME_BYTES_MAX:
                return
            frame = await reader.readexactly(size)
            kind, version, correlation, name = struct.unpack_from(">hhih", frame)
            body = frame[10 + max(name, 0) :]
            if kind == SASL_AUTHENTICATE:
                login = login or Login(super_password(self._secret, cluster))
                answer = _authenticated(login.answer(body[4:].decode()))
            else:
                answer = self._answer(kind, version, address)
            writer.write(struct.pack(">ii", 4 + len(answer), correlation) + answer)
            await writer.drain()

    def _answer(self, kind: int, version: int, address: str) -> bytes:
        least, most = VERSIONS.get(kind, (0, -1))
        if kind == API_VERSIONS:
            known = b"".join(
                struct.pack(">hhh", key, *versions) for key, versions in VERSIONS.items()
            )
            error = 0 if version <= most else UNSUPPORTED_VERSION
            return struct.pack(">hi", error, len(VERSIONS)) + known
        if not least <= version <= most:
            message = f"a request of kind {kind}, version {version}"
            raise ValueError(message)
        if kind == SASL_HANDSHAKE:
            return struct.pack(">hi", 0, 1) + _text(MECHANISM)
        # These have compact fields: a length of n is written as n + 1, and each structure, also the
        # answer's head, ends with the number of its tagged fields.
        if kind == LIST_GROUPS:
            return struct.pack(">bihbb", 0, 0, 0, 1, 0)
        # One broker without a rack, which is the controller, and no topic.
        host = address.encode()
        broker = struct.pack(">ib", 0, len(host) + 1) + host
        broker += struct.pack(">ibb", self._kafka_port, 0, 0)
        return struct.pack(">bib", 0, 0, 2) + broker + struct.pack(">bibb", 0, 0, 1, 0)


class Login:
    """The server's side of SCRAM (RFC 5802) with one user's password."""

    def __init__(self, password: str) -> None:
        self._password = password
        self._said = ""

    def answer(self, message: str) -> str | None:
        """Answers the client's first or last message; None for a wrong password."""
        if not self._said:
            bare = message.split(",", 2)[2]
            nonce = _attributes(bare)["r"] + secrets.token_hex(12)
            salt = base64.b64encode(SALT).decode()
            first = f"r={nonce},s={salt},i={ITERATIONS}"
            self._said = f"{bare},{first}"
            return first
        unproved, _, proof = message.rpartition(",p=")
        said = f"{self._said},{unproved}".encode()
        client_key, server_key = _keys(self._password)
        stored = hashlib.sha512(client_key).digest()
        expected = int.from_bytes(client_key) ^ int.from_bytes(_signature(stored, said))
        if not hmac.compare_digest(base64.b64decode(proof), expected.to_bytes(len(client_key))):
            return None
        return f"v={base64.b64encode(_signature(server_key, said)).decode()}"


def _authenticated(message: str | None) -> bytes:
    error = 0 if message is not None else SASL_AUTHENTICATION_FAILED
    answer = (message or "").encode()
    return struct.pack(">hhi", error, -1, len(answer)) + answer


@functools.cache
def _keys(password: str) -> tuple[bytes, bytes]:
    """The client's and the server's key of SCRAM, derived from a password."""
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), SALT, ITERATIONS)
    return _signature(salted, b"Client Key"), _signature(salted, b"Server Key")


def _signature(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha512")


def _attributes(message: str) -> dict[str, str]:
    return {name: value for name, _, value in (part.partition("=") for part in message.split(","))}


def _text(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _address(writer: asyncio.StreamWriter) -> str:
    return str(writer.get_extra_info("sockname")[0])


async def serve_brokers(kubeconfig: Path, nodes: int, secret: Path, ports: tuple[int, int]) -> None:
    """Answers requests and marks pods until the process is ended."""
    client = Client(kubeconfig)
    brokers = Brokers(client)
    server = Server(brokers, read_cell_secret(secret), ports[1])
    # All of 127.0.0.0/8 at once; addresses of no pod, those outside of it too, get no answer.
    everywhere = "0.0.0.0"  # noqa: S104
    for answer, port in zip((server.metrics, server.kafka), ports, strict=True):
        await asyncio.start_server(answer, everywhere, port, backlog=4096)
    names = [f"node-{number}" for number in range(nodes)]
    await asyncio.to_thread(StandInKubelet, client, brokers, names, CAPACITY)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    where, count, cell_secret, *listening = sys.argv[1:]
    metrics_port, kafka_port = map(int, listening)
    asyncio.run(
        serve_brokers(Path(where), int(count), Path(cell_secret), (metrics_port, kafka_port))
    )
