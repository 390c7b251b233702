"""Runs a pod's container as a process of this machine, with a kubelet's probes, restarts and stops.

The pod's address is a loopback address of its own. The container's root is a folder with its
mounts, and paths and addresses in its command and settings are rewritten to match. Pauses are a
tenth of a kubelet's, so that tests are fast.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.kubernetes.client import Client
from tests.kubernetes.stand_in_kubelet import (
    Pod,
    container_status,
    end,
    now,
    path_of,
    pod_status,
)

REPOSITORY = Path(__file__).parents[2]
PACE = 0.1
LOOK_S = 0.05
# Pauses before a container that ends again and again is restarted: a kubelet begins with 10 s,
# which it doubles up to 5 min.
RESTART_S: tuple[float, ...] = (0.0, *(PACE * 10 * 2**number for number in range(5)), PACE * 300)
MESSAGE_BYTES = 2048
# How late a kubelet notices that a pod was deleted by force.
FORCED_GRACE_S = 1.0

# The process that holds such a name has the addresses 127.<number>.0.0/16 until it ends.
_shares: list[socket.socket] = []


class Processes:
    """Runs pods as processes; see `Containers`."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self._pods: dict[str, PodProcess] = {}
        self._gone: list[PodProcess] = []
        share = _take_share()
        self._addresses = (
            f"127.{share}.{high}.{low}"
            for high, low in itertools.product(range(256), range(1, 255))
        )

    def seen(self, pod: Pod) -> None:
        """See `Containers`."""
        uid = pod["metadata"]["uid"]
        if uid not in self._pods and "deletionTimestamp" not in pod["metadata"]:
            root = self._folder / uid
            self._pods[uid] = PodProcess(self._client, pod, next(self._addresses), root)
        process = self._pods.get(uid)
        if "deletionTimestamp" not in pod["metadata"]:
            return
        if process is None:
            end(self._client, pod)
        else:
            process.stop(float(pod["metadata"]["deletionGracePeriodSeconds"]))

    def gone(self, pod: Pod) -> None:
        """See `Containers`."""
        process = self._pods.pop(pod["metadata"]["uid"], None)
        if process is not None:
            self._gone.append(process)
            process.stop(FORCED_GRACE_S)

    def crash(self, name: str) -> None:
        """Kills the container of a pod, as a kernel that is out of memory does."""
        for process in self._pods.values():
            if process.name == name:
                process.kill()

    def close(self) -> None:
        """See `Containers`."""
        every = [*self._pods.values(), *self._gone]
        for process in every:
            process.kill()
            process.stop(0.0)
        for process in every:
            process.join()


class PodProcess:
    """One pod, which has a thread of its own."""

    def __init__(self, client: Client, pod: Pod, address: str, root: Path) -> None:
        self.name = str(pod["metadata"]["name"])
        self._client = client
        self._pod = pod
        self._address = address
        self._root = root
        self._container: dict[str, Any] = pod["spec"]["containers"][0]
        self._stopping = threading.Event()
        self._grace_s = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._restarts = 0
        self._last: dict[str, Any] = {}
        self._reported: tuple[Any, ...] = ()
        self._thread = threading.Thread(target=self._run, name=f"pod {self.name}", daemon=True)
        self._thread.start()

    def stop(self, grace_s: float) -> None:
        """Asks the pod to end, and kills it after its grace period."""
        if not self._stopping.is_set():
            self._grace_s = grace_s
            self._stopping.set()

    def kill(self) -> None:
        """Kills the container with all its processes."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def join(self) -> None:
        """Waits until the pod has ended."""
        self._thread.join()

    def _run(self) -> None:
        try:
            if self._mount():
                while not self._stopping.wait(self._pause_s()):
                    self._run_once()
                    self._restarts += 1
        finally:
            self.kill()
            with contextlib.suppress(OSError):
                end(self._client, self._pod)
            shutil.rmtree(self._root, ignore_errors=True)

    def _pause_s(self) -> float:
        return RESTART_S[min(max(self._restarts - 1, 0), len(RESTART_S) - 1)]

    def _run_once(self) -> None:
        """Runs the container once, from its start to its end."""
        log = self._root / f"{self._restarts}.log"
        command = [self._placed(word) for word in self._container["command"]]
        if command[0] == "python":
            command[0] = sys.executable
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY)}
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *command],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._attend(self._process)
        status = self._process.wait()
        # When the first process of a container ends, all others are killed.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        text = log.read_bytes()[-MESSAGE_BYTES:].decode(errors="replace") if status else ""
        self._last = {
            "terminated": {
                "exitCode": status if status >= 0 else 128 - status,
                "reason": "Error" if status else "Completed",
                "message": text,
                "finishedAt": now(),
            }
        }
        if not self._stopping.is_set():
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
            self._report_state(waiting if self._restarts else self._last, ready=False)

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Probes the container until it ends or the pod is asked to end, and then stops it."""
        running = {"running": {"startedAt": now()}}
        self._report_state(running, ready=False)
        startup, readiness = (
            Probe(self._container[name], self._address, self._container["ports"])
            for name in ("startupProbe", "readinessProbe")
        )
        started = False
        while process.poll() is None and not self._stopping.wait(LOOK_S):
            if not started:
                started = startup.look()
                if startup.failed:
                    self.kill()
            elif readiness.look() or readiness.failed:
                self._report_state(running, ready=not readiness.failed)
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self._grace_s)
            self.kill()

    def _report_state(self, state: dict[str, Any], *, ready: bool) -> None:
        reported = (self._restarts, tuple(state), ready)
        if reported == self._reported:
            return
        self._reported = reported
        container = container_status(
            self._pod,
            self._container["name"],
            state=state,
            ready=ready,
            restarts=self._restarts,
            last_state=self._last,
        )
        status = pod_status(self._address, container)
        self._client.patch(f"{path_of(self._pod)}/status", {"status": status})

    def _mount(self) -> bool:
        """Mounts all volumes below the root. Returns False where the pod was asked to end first."""
        mounts = {
            mount["name"]: Path(mount["mountPath"]) for mount in self._container["volumeMounts"]
        }
        for volume in self._pod["spec"]["volumes"]:
            target = self._root / mounts[volume["name"]].relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            while not self._mounted(volume, target):
                if self._stopping.wait(LOOK_S):
                    return False
        return True

    def _mounted(self, volume: dict[str, Any], target: Path) -> bool:
        if "emptyDir" in volume:
            target.mkdir()
            return True
        if "secret" in volume:
            secret = self._read_object("secrets", volume["secret"]["secretName"])
            if secret is not None:
                target.mkdir(mode=0o700)
                for name, value in secret["data"].items():
                    text = self._placed(base64.b64decode(value).decode())
                    (target / name).write_text(text)
                    (target / name).chmod(0o600)
            return secret is not None
        claim = self._read_object(
            "persistentvolumeclaims", volume["persistentVolumeClaim"]["claimName"]
        )
        if claim is None or claim["status"]["phase"] != "Bound":
            return False
        name = claim["spec"]["volumeName"]
        source = self._client.get(f"/api/v1/persistentvolumes/{name}")["spec"]["hostPath"]["path"]
        Path(source).mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)
        return True

    def _read_object(self, plural: str, name: str) -> dict[str, Any] | None:
        space = self._pod["metadata"]["namespace"]
        answer = self._client.ask("GET", f"/api/v1/namespaces/{space}/{plural}/{name}")
        return answer.document if answer.status == http.client.OK else None

    def _placed(self, text: str) -> str:
        """Rewrites the paths and addresses of a container's text to those of this machine."""
        for place in ("/etc/freshet", "/dfs"):
            text = text.replace(f'"{place}', f'"{self._root}{place}')
            if text.startswith(place):
                text = f"{self._root}{text}"
        text = text.replace("0.0.0.0:", f"{self._address}:")
        for variable in self._container["env"]:
            value = self._value_of(variable["valueFrom"]["fieldRef"]["fieldPath"])
            text = text.replace(f"$({variable['name']})", value)
        return text

    def _value_of(self, field: str) -> str:
        """The value of a field of the pod, for an environment variable."""
        if field == "status.podIP":
            return self._address
        label = re.fullmatch(r"metadata\.labels\['(.+)'\]", field)
        assert label is not None, field
        return str(self._pod["metadata"]["labels"].get(label[1], ""))


class Probe:
    """An HTTP probe from a manifest."""

    def __init__(self, probe: dict[str, Any], address: str, ports: list[dict[str, Any]]) -> None:
        port_name = probe["httpGet"]["port"]
        self._port = next(port["containerPort"] for port in ports if port["name"] == port_name)
        self._address = address
        self._path = probe["httpGet"]["path"]
        self._timeout_s = float(probe["timeoutSeconds"])
        self._period_s = probe["periodSeconds"] * PACE
        self._threshold = probe["failureThreshold"]
        self._failures = 0
        self._due = 0.0

    @property
    def failed(self) -> bool:
        """Whether it failed as often in a row as its threshold says."""
        return bool(self._failures >= self._threshold)

    def look(self) -> bool:
        """Probes when that is due. Returns whether it was answered with success now."""
        if time.monotonic() < self._due:
            return False
        self._due = time.monotonic() + self._period_s
        well = self._probe_once()
        self._failures = 0 if well else self._failures + 1
        return well

    def _probe_once(self) -> bool:
        connection = http.client.HTTPConnection(self._address, self._port, timeout=self._timeout_s)
        try:
            connection.request("GET", self._path)
            return connection.getresponse().status < http.client.BAD_REQUEST
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _take_share() -> int:
    for number in range(64, 127):
        name = socket.socket(socket.AF_UNIX)
        try:
            name.bind(f"\0freshet-test-loopback-{number}")
        except OSError:
            name.close()
            continue
        _shares.append(name)
        return number
    message = "no share of loopback addresses is free"
    raise OSError(message)
