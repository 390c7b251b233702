"""A real Kubernetes without nodes: etcd, API server, controllers and scheduler on loopback ports.

Its etcd does not sync, so its data does not survive a crash. `kubeconfig` returns a client's
settings. The servers end with the process that started them, however it ends.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kubernetes.pki import Authority
from tests.ports import free_ports

LOOPBACK = "127.0.0.1"
START_S = 120.0
STOP_S = 30.0
LOOK_S = 0.05
MASTERS = "system:masters"
# The users that may connect, with their groups. `ControlPlane` takes further ones.
USERS: Mapping[str, tuple[str, ...]] = {
    "admin": (MASTERS,),
    "keeper": (MASTERS, "system:serviceaccounts:freshet-system"),
    "operator": (MASTERS, "freshet:break-glass"),
    "stand-in-kubelet": (MASTERS,),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
}
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
# Only requests of these users are recorded: Kubernetes' own parts make many.
COUNTED = ("keeper",)


@dataclass(frozen=True)
class Request:
    """A request that the API server answered, from its audit log."""

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    status: int


@dataclass
class Servers:
    """The paths of the servers' programs, and a command that each is started with.

    `nsenter` with its flags, for example, starts them in a network namespace.
    """

    folder: Path
    prefix: Sequence[str] = ()
    # The address that the API server advertises.
    address: str = LOOPBACK
    more_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)


class ControlPlane:
    """The servers of a Kubernetes without nodes. All files are in `folder`."""

    def __init__(
        self, folder: Path, servers: Servers, users: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self.folder = folder
        self._servers = servers
        self._users = {**USERS, **(users or {})}
        self._processes: list[tuple[str, subprocess.Popen[bytes]]] = []
        self._client, self._peer, self.port, *self._secure = free_ports(5)
        self.authority = Authority(folder / "pki")

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return f"https://{self._servers.address}:{self.port}"

    @property
    def pids(self) -> Mapping[str, int]:
        """The servers' process ids, by name."""
        return {name: process.pid for name, process in self._processes}

    def start(self) -> None:
        """Starts the servers. Returns once the API server serves and the controllers work."""
        self._make_keys()
        self._run("etcd", *self._etcd())
        self._run("kube-apiserver", *self._apiserver())
        # Only once it is ready do the roles exist without which the other servers would end.
        self._wait("/readyz")
        for (name, flags), port in zip(self._followers(), self._secure, strict=True):
            identity = str(self.kubeconfig(f"system:{name}"))
            connect = [
                f"--{prefix}kubeconfig={identity}"
                for prefix in ("", "authentication-", "authorization-")
            ]
            self._run(
                name,
                *connect,
                *flags,
                "--leader-elect=false",
                f"--bind-address={LOOPBACK}",
                f"--secure-port={port}",
            )
        # The controllers create it, so they work once it exists.
        self._wait("/api/v1/namespaces/default/serviceaccounts/default")

    def stop(self) -> None:
        """Ends all servers, in the reverse order of their start."""
        for _, process in reversed(self._processes):
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def kubeconfig(self, user: str = "admin", server: str = "") -> Path:
        """The kubeconfig of a user. `server`: another address than the API server's own."""
        return self.kubeconfig_of(user.replace(":", "-"), _token(user), server)

    def kubeconfig_of(self, name: str, token: str, server: str = "") -> Path:
        """The kubeconfig of a client with a token, for example of a service account."""
        cluster: dict[str, object] = {"server": server or self.url}
        if not server.startswith("http:"):
            cluster["certificate-authority"] = str(self.authority.certificate("ca"))
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": name}}],
            "current-context": "tests",
        }
        path = self.folder / f"{name}{server.rpartition(':')[2]}.kubeconfig"
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        return path

    def log(self, name: str) -> Path:
        """The path of a server's log."""
        return self.folder / f"{name}.log"

    @contextmanager
    def recorded(self) -> Iterator[list[Request]]:
        """Collects all requests of the recorded users that were answered within the block."""
        audit = self.folder / "audit.log"
        before = audit.stat().st_size if audit.exists() else 0
        requests: list[Request] = []
        yield requests
        if audit.exists():
            with audit.open("rb") as file:
                file.seek(before)
                requests += [_request(json.loads(line)) for line in file]

    def _make_keys(self) -> None:
        names = [f"IP:{host}" for host in dict.fromkeys([LOOPBACK, self._servers.address])]
        names += ["IP:10.96.0.1", "DNS:localhost", "DNS:kubernetes.default.svc"]
        self.authority.issue("server", "/CN=apiserver", usage="serverAuth", names=tuple(names))
        self.authority.issue(
            "kubelet-client", f"/O={MASTERS}/CN=apiserver-kubelet-client", usage="clientAuth"
        )
        self.authority.make_signing_key("accounts")
        rows = [
            f'{_token(user)},{user},{user},"{",".join(groups)}"'
            for user, groups in self._users.items()
        ]
        tokens = self.folder / "tokens.csv"
        tokens.write_text("\n".join(rows))
        tokens.chmod(0o600)
        rules = [
            {
                "level": "Metadata",
                "users": list(COUNTED),
                "omitStages": ["RequestReceived", "ResponseStarted"],
            },
            {"level": "None"},
        ]
        policy = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
        (self.folder / "audit-policy.json").write_text(json.dumps(policy))

    def _etcd(self) -> list[str]:
        client, peer = (f"http://{LOOPBACK}:{port}" for port in (self._client, self._peer))
        return [
            "--name=tests",
            f"--data-dir={self.folder / 'etcd'}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=tests={peer}",
            "--log-level=warn",
        ]

    def _apiserver(self) -> list[str]:
        keys = self.authority
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._client}",
            "--bind-address=0.0.0.0",
            f"--secure-port={self.port}",
            # Loopback cannot be an endpoint of its own Service, which no test uses.
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={keys.certificate('server')}",
            f"--tls-private-key-file={keys.key('server')}",
            f"--client-ca-file={keys.certificate('ca')}",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            # On by default from 1.35: pods get their node's zone as a label.
            "--feature-gates=PodTopologyLabelsAdmission=true",
            "--anonymous-auth=false",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys.folder / 'accounts.pub'}",
            f"--service-account-signing-key-file={keys.key('accounts')}",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--kubelet-client-certificate={keys.certificate('kubelet-client')}",
            f"--kubelet-client-key={keys.key('kubelet-client')}",
            f"--kubelet-certificate-authority={keys.certificate('ca')}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--audit-policy-file={self.folder / 'audit-policy.json'}",
            f"--audit-log-path={self.folder / 'audit.log'}",
            "--profiling=false",
        ]

    def _followers(self) -> list[tuple[str, list[str]]]:
        keys = self.authority
        controllers = [
            f"--service-account-private-key-file={keys.key('accounts')}",
            f"--root-ca-file={keys.certificate('ca')}",
            "--use-service-account-credentials",
            # High limits: the API server serves these tests only.
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--concurrent-namespace-syncs=20",
        ]
        scheduler = ["--kube-api-qps=1000", "--kube-api-burst=2000"]
        return [("kube-controller-manager", controllers), ("kube-scheduler", scheduler)]

    def _run(self, name: str, *flags: str) -> None:
        program = [str(self._servers.folder / "etcd")]
        if name != "etcd":
            program = [str(self._servers.folder / "kube"), name]
        command = [*self._servers.prefix, *program, *flags, *self._servers.more_flags.get(name, ())]
        with self.log(name).open("ab") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._processes.append((name, process))

    def _wait(self, path: str) -> None:
        deadline, pause = time.monotonic() + START_S, threading.Event()
        while not self._answers(path):
            for name, process in self._processes:
                assert process.poll() is None, f"{name} ended:\n{_tail(self.log(name))}"
            assert time.monotonic() < deadline, f"no {path}:\n{_tail(self.log('kube-apiserver'))}"
            pause.wait(LOOK_S)

    def _answers(self, path: str) -> bool:
        context = ssl.create_default_context(cafile=str(self.authority.certificate("ca")))
        connection = http.client.HTTPSConnection(
            self._servers.address, self.port, context=context, timeout=START_S
        )
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {_token('admin')}"})
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()


def counted(requests: Sequence[Request]) -> Counter[str]:
    """The number of requests by verb."""
    return Counter(request.verb for request in requests)


def writes(requests: Sequence[Request]) -> list[Request]:
    """The requests that change something, or try to."""
    return [request for request in requests if request.verb in WRITES]


def _token(user: str) -> str:
    return "token-of-" + user.replace(":", "-")


def _request(entry: Mapping[str, dict[str, str]]) -> Request:
    target = entry.get("objectRef", {})
    return Request(
        user=entry["user"]["username"],
        verb=str(entry["verb"]),
        resource="/".join(filter(None, (target.get("resource"), target.get("subresource")))),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        status=int(entry.get("responseStatus", {}).get("code", 0)),
    )


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-3_000:]
