"""A real etcd of one member for as long as a block lasts."""

from __future__ import annotations

import base64
import itertools
import json
import os
import signal
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from tests.built import built
from tests.kubernetes.pki import Authority
from tests.ports import free_ports

STOP_TIMEOUT_S = 30
# Doubling from 10 ms, to a minute in all.
START_RETRIES = urllib3.Retry(total=20, backoff_factor=0.01, backoff_max=5, status_forcelist=[503])


@dataclass(kw_only=True)
class EtcdServer:
    """A member, its folder and its ports. It can be ended, killed, stopped and started again."""

    folder: Path
    port: int
    peer_port: int
    host: str = "127.0.0.1"
    process: subprocess.Popen[bytes] | None = None
    # With an authority, clients reach the member by TLS alone, with certificates that the authority
    # signed. The member's own certificate is called `server`; it must be valid for a client too,
    # because the JSON interface of etcd connects to the member itself.
    authority: Authority | None = None
    # In bytes; 0: no quota is given, and etcd's own default holds.
    quota_bytes: int = 0
    roots: Iterator[int] = field(default_factory=itertools.count)

    @property
    def address(self) -> str:
        """`host:port` for clients."""
        return f"{self.host}:{self.port}"

    def location(self, root: str = "", options: Mapping[str, object] | None = None) -> str:
        """The location of a metadata store below a root, by default one that nobody has used."""
        query = "&".join(f"{name}={value}" for name, value in (options or {}).items())
        root = root or f"cell-{next(self.roots)}"
        scheme = "etcds" if self.authority else "etcd"
        return f"{scheme}://{self.address}/{root}" + (f"?{query}" if query else "")

    def start(self) -> None:
        """Starts it with what it kept, and waits until it is ready."""
        scheme = "https" if self.authority else "http"
        client, peer = f"{scheme}://{self.address}", f"http://127.0.0.1:{self.peer_port}"
        options = {
            "name": "m",
            "data-dir": self.folder / "data",
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"m={peer}",
            "log-level": "error",
            # The disk of a machine that runs tests is shared by many.
            "heartbeat-interval": 200,
            "election-timeout": 2000,
        }
        if self.quota_bytes:
            options["quota-backend-bytes"] = self.quota_bytes
        if self.authority:
            options |= {
                "cert-file": self.authority.certificate("server"),
                "key-file": self.authority.key("server"),
                "trusted-ca-file": self.authority.certificate("ca"),
                "client-cert-auth": "true",
            }
        flags = [f"--{name}={value}" for name, value in options.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [built("etcd"), "--unsafe-no-fsync", *flags], stdout=log, stderr=log
            )
        with urllib3.PoolManager(ssl_context=self._own_context()) as pool:
            answer = pool.request("GET", f"{client}/health", retries=START_RETRIES)
        assert answer.status == 200, answer.data

    def _own_context(self) -> ssl.SSLContext | None:
        if self.authority is None:
            return None
        context = ssl.create_default_context(cafile=str(self.authority.certificate("ca")))
        context.load_cert_chain(self.authority.certificate("server"), self.authority.key("server"))
        return context

    def guard(self) -> None:
        """Switches authentication on: from now on it knows the user `root` and no other."""
        self.root_password.write_text("of-root")
        self.root_password.chmod(0o600)
        calls: list[tuple[str, dict[str, str]]] = [
            ("user/add", {"name": "root", "password": "of-root"}),
            ("user/grant", {"user": "root", "role": "root"}),
            ("enable", {}),
        ]
        with urllib3.PoolManager() as pool:
            for path, body in calls:
                answer = pool.request("POST", f"http://{self.address}/v3/auth/{path}", json=body)
                assert answer.status == 200, answer.data

    @property
    def root_password(self) -> Path:
        """The file with root's password, once it is guarded."""
        return self.folder / "root-password"

    def as_root(self, root: str) -> str:
        """The location of a metadata store below `root`, with the user who may do everything."""
        return self.location(root, {"user": "root", "password_file": self.root_password})

    def records(self, root: str, cluster: str) -> dict[str, Any]:
        """All metadata of a cluster by its keys, by etcd's own JSON interface."""
        prefix = f"{root}/{cluster}/".encode()
        # The key behind the last one with this prefix.
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        key_range = {"key": _base64(prefix), "range_end": _base64(end)}
        with urllib3.PoolManager() as pool:
            answer = pool.request("POST", f"http://{self.address}/v3/kv/range", json=key_range)
        assert answer.status == 200, answer.data
        records = {}
        for pair in answer.json().get("kvs", []):
            key = base64.b64decode(pair["key"]).removeprefix(prefix).decode()
            records[key] = json.loads(base64.b64decode(pair["value"]))
        return records

    def pause(self) -> None:
        """Stops all of its threads; it has stopped when this returns."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def unpause(self) -> None:
        """Lets it go on after a pause."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ends it and waits for its end; what it keeps stays."""
        assert self.process is not None
        self.process.send_signal(number)
        self.process.wait(STOP_TIMEOUT_S)


@contextmanager
def running_etcd(
    folder: Path,
    host: str = "127.0.0.1",
    authority: Authority | None = None,
    *,
    quota_bytes: int = 0,
) -> Iterator[EtcdServer]:
    """A member that answers and keeps its data in the folder."""
    port, peer_port = free_ports(2)
    server = EtcdServer(
        folder=folder,
        port=port,
        peer_port=peer_port,
        host=host,
        authority=authority,
        quota_bytes=quota_bytes,
    )
    try:
        server.start()
        yield server
    finally:
        if server.process is not None and server.process.poll() is None:
            # Asked to stop it would wait for clients, and nobody reads its data again.
            server.stop(signal.SIGKILL)


def _base64(key: bytes) -> str:
    return base64.b64encode(key).decode()
