"""A client of etcd for what the engine does not do there: leases, users and roles, copies, and
keeping its database small.

It uses etcd's own gateway from JSON to gRPC, at the same address. What brokers and the control
plane store in etcd is read and written through `brokers.metadata` instead.

Calls raise the errors of `brokers.errors`: `UnavailableError` where nothing was done,
`UnknownOutcomeError` where that is not known, `InvalidError` where etcd refuses the call.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError, NewConnectionError

from brokers.errors import InvalidError, UnavailableError, UnknownOutcomeError
from brokers.locations import EtcdLocation

__all__ = ["Entry", "Etcd", "MemberStatus", "range_end"]

TIMEOUT_S = 5.0
PAGE_KEYS = 500
# Statuses of gRPC.
UNAUTHENTICATED, UNAVAILABLE, FAILED_PRECONDITION = 16, 14, 9
# Texts by which a member says that it did nothing: another one may.
NOT_DONE = ("no leader", "not capable", "stopped")
# Texts for a revision whose history is gone, and for the alarm by which etcd refuses writes.
COMPACTED = "has been compacted"
NO_SPACE = "alarm:NOSPACE"


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value. `lease` is 0 where it has none."""

    key: str
    value: bytes
    revision: int
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The entries of a range, all of them at one `revision`."""

    entries: tuple[Entry, ...]
    revision: int


@dataclass(frozen=True, slots=True)
class MemberStatus:
    """How large a member's database is.

    `file_bytes`: the size of its file, to which the quota applies; it never shrinks by itself.
    `in_use_bytes`: the size that a defragmentation would leave. `quota_bytes`: 0 where the member
    does not report it, as before etcd 3.6 or where none was set; negative where it has no quota.
    `out_of_space`: etcd refuses all writes, because some member has reached its quota.
    """

    file_bytes: int
    in_use_bytes: int
    quota_bytes: int
    out_of_space: bool = False


class Etcd:
    """A client of etcd, for any number of threads. Keys are below the location's root."""

    def __init__(self, location: EtcdLocation, *, timeout_s: float = TIMEOUT_S) -> None:
        self.location = location
        self._timeout_s = timeout_s
        self._pool = self._connections()
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._token: str | None = None
        # The member that answered last.
        self._first = 0

    def get(self, key: str) -> Entry | None:
        """The entry of a key (a linearizable read); None where there is none."""
        answer = self._read("kv/range", {"key": self._coded(key)})
        pairs = answer.get("kvs", ())
        return self._entry(pairs[0]) if pairs else None

    def range(self, prefix: str, *, revision: int = 0) -> Answer:
        """All keys that begin with `prefix`, at `revision`, or at the newest one where it is 0."""
        entries: list[Entry] = []
        start, end = self._coded(prefix), _base64(range_end(self.location.root + prefix))
        if not self.location.root + prefix:
            start = end = _base64(b"\0")
        while True:
            request = {"key": start, "range_end": end, "limit": PAGE_KEYS, "revision": revision}
            answer = self._read("kv/range", request)
            revision = revision or int(answer["header"]["revision"])
            entries += [self._entry(pair) for pair in answer.get("kvs", ())]
            if not answer.get("more"):
                return Answer(tuple(entries), revision)
            start = _base64((self.location.root + entries[-1].key).encode() + b"\0")

    def create(self, key: str, value: bytes, *, lease: int = 0) -> bool:
        """Writes a key that is not there; False where it is."""
        name = self._coded(key)
        put = {"key": name, "value": _base64(value), "lease": lease}
        answer = self._write(
            "kv/txn",
            {
                "compare": [{"key": name, "target": "CREATE", "create_revision": 0}],
                "success": [{"request_put": put}],
            },
        )
        return bool(answer.get("succeeded"))

    def write(self, entries: Mapping[str, bytes]) -> None:
        """Writes keys, all or none: up to etcd's limit of operations, which is 128."""
        puts = [
            {"request_put": {"key": self._coded(key), "value": _base64(value)}}
            for key, value in entries.items()
        ]
        self._write("kv/txn", {"success": puts})

    def remove(self, prefix: str) -> int:
        """Removes all keys that begin with `prefix`; returns how many."""
        start, end = self._coded(prefix), _base64(range_end(self.location.root + prefix))
        if not self.location.root + prefix:
            start = end = _base64(b"\0")
        answer = self._write("kv/deleterange", {"key": start, "range_end": end})
        return int(answer.get("deleted", 0))

    def grant_lease(self, ttl_s: int) -> int:
        """Grants a lease. Keys written with it are removed once nobody keeps it for `ttl_s`."""
        return int(self._read("lease/grant", {"TTL": ttl_s})["ID"])

    def keep_lease(self, lease: int) -> bool:
        """Renews a lease; False where it is over."""
        answer = self._read("lease/keepalive", {"ID": lease})
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    def revoke_lease(self, lease: int) -> None:
        """Ends a lease and removes its keys. A lease that is over is no error."""
        try:
            self._read("lease/revoke", {"ID": lease})
        except InvalidError as error:
            if "lease not found" not in str(error):
                raise

    def compact(self, revision: int) -> bool:
        """Drops the history before a revision; False where it is gone already.

        That is the history of the whole etcd, also of keys outside of the root.
        """
        try:
            self._read("kv/compaction", {"revision": revision})
        except InvalidError as error:
            if COMPACTED not in str(error):
                raise
            return False
        return True

    def status(self) -> MemberStatus:
        """The status of the member that answers. Needs etcd's role `root`."""
        answer = self._read("maintenance/status", {})
        return MemberStatus(
            file_bytes=int(answer.get("dbSize", 0)),
            in_use_bytes=int(answer.get("dbSizeInUse", 0)),
            quota_bytes=int(answer.get("dbSizeQuota", 0)),
            out_of_space=any(NO_SPACE in error for error in answer.get("errors", ())),
        )

    def call(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Makes any call of `/v3/` that may be repeated."""
        return self._read(path, body)

    def close(self) -> None:
        """Closes its connections."""
        self._pool.clear()

    def _connections(self) -> urllib3.PoolManager:
        pool = urllib3.PoolManager(retries=False, timeout=self._timeout_s)
        if self.location.tls:
            # None: the name of the host that is connected to.
            name = self.location.server_name
            pool.connection_pool_kw |= {
                "ssl_context": _context(self.location),
                "server_hostname": name,
                "assert_hostname": name,
            }
        return pool

    def _coded(self, key: str) -> str:
        return _base64((self.location.root + key).encode())

    def _entry(self, pair: Mapping[str, str]) -> Entry:
        key = base64.b64decode(pair["key"]).decode().removeprefix(self.location.root)
        value = base64.b64decode(pair.get("value", ""))
        return Entry(key, value, int(pair["mod_revision"]), int(pair.get("lease", 0)))

    def _read(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Makes a call that may be repeated, on each member until one answers."""
        reasons = []
        for _ in self.location.members:
            try:
                return self._ask(path, body)
            except (UnavailableError, UnknownOutcomeError) as error:
                reasons.append(str(error))
                self._turn()
        message = "; ".join(reasons)
        raise UnavailableError(message)

    def _write(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Makes a call on each member until one answers or the outcome is not known."""
        reasons = []
        for _ in self.location.members:
            try:
                return self._ask(path, body)
            except UnavailableError as error:
                reasons.append(str(error))
                self._turn()
        message = "; ".join(reasons)
        raise UnavailableError(message)

    def _turn(self) -> None:
        with self._lock:
            self._first = (self._first + 1) % len(self.location.members)

    def _ask(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        with self._lock:
            if self._process != os.getpid():
                # After a fork the connections are the parent's: an answer on them may be for it.
                self._pool, self._process = self._connections(), os.getpid()
        token = self._authenticated()
        try:
            return self._send(path, body, token)
        except _Unauthenticated:
            # A token expires after minutes, and with its member.
            with self._lock:
                self._token = None
            return self._send(path, body, self._authenticated())

    def _authenticated(self) -> str | None:
        if self.location.user is None or self.location.password_file is None:
            return None
        with self._lock:
            token = self._token
        if token is None:
            try:
                password = self.location.password_file.read_text().rstrip()
            except (OSError, UnicodeDecodeError) as error:
                raise UnavailableError(f"{self.location.password_file}: {error}") from error
            who = {"name": self.location.user, "password": password}
            token = str(self._send("auth/authenticate", who, None)["token"])
            with self._lock:
                self._token = token
        return token

    def _send(self, path: str, body: Mapping[str, object], token: str | None) -> dict[str, Any]:
        member = self.location.members[self._first]
        scheme = "https" if self.location.tls else "http"
        headers = {"Content-Type": "application/json"}
        if token is not None:
            headers["Authorization"] = token
        try:
            answer = self._pool.request(
                "POST", f"{scheme}://{member}/v3/{path}", body=json.dumps(body), headers=headers
            )
            content: dict[str, Any] = json.loads(answer.data)
        except NewConnectionError as error:
            raise UnavailableError(f"etcd at {member}: {error}") from error
        except (HTTPError, OSError, ValueError) as error:
            raise UnknownOutcomeError(f"etcd at {member}: {error}") from error
        if answer.status != 200 or "error" in content:
            raise _refusal(f"etcd at {member}", content)
        return content


class _Unauthenticated(InvalidError):
    """The token is unknown to the member, or has expired."""


def range_end(prefix: str) -> bytes:
    """The end of the range of keys with a prefix, as etcd has it: the prefix with a byte raised."""
    data = prefix.encode().rstrip(b"\xff")
    return data[:-1] + bytes([data[-1] + 1]) if data else b"\0"


def _refusal(who: str, content: Mapping[str, Any]) -> Exception:
    error = content.get("error")
    facts = error if isinstance(error, dict) else content
    text = str(facts.get("message") or facts.get("error") or content)
    code = facts.get("code", facts.get("grpc_code"))
    message = f"{who}: {text}"
    if code == UNAUTHENTICATED or "invalid auth token" in text:
        return _Unauthenticated(message)
    if code == UNAVAILABLE:
        done = not any(phrase in text for phrase in NOT_DONE)
        return UnknownOutcomeError(message) if done else UnavailableError(message)
    return InvalidError(message)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _context(location: EtcdLocation) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=location.ca)
    if location.cert is not None:
        context.load_cert_chain(location.cert, location.key)
    return context
