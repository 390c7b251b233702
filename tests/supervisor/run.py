"""A run of `manage.py up` under a test, with ports of its own: its lines are read, it is ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from console.programs.supervisor.processes import Identity, identify_process, is_running, members_of
from console.settings.home import derive_mail_token
from tests.ports import free_block

ROOT = Path(__file__).resolve().parents[2]
UP_TIMEOUT_S = 240
END_TIMEOUT_S = 180
UP = "All of it is up after"


def wait_until(
    holds: Callable[[], bool], what: str, timeout_s: float = 120, pause_s: float = 0.05
) -> None:
    """Waits until `holds` returns True; fails with the words `what` after `timeout_s`."""
    pause = threading.Event()
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if holds():
            return
        pause.wait(pause_s)
    message = f"not within {timeout_s:g} s: {what}"
    raise AssertionError(message)


class Run:
    """Runs `manage.py up` on a home, with ports of its own, any number of times."""

    def __init__(self, home: Path, extra: dict[str, str] | None = None) -> None:
        self.home = home
        ports = free_block()
        self.http, self.tls = ports[:2]
        self.kafka, self.kafka_ports = ports[2], len(ports) - 2
        self.lines: list[str] = []
        self._line_read = threading.Condition()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._extra = extra or {}

    @property
    def address(self) -> str:
        """The console's address."""
        return f"http://127.0.0.1:{self.http}"

    @property
    def mail_page(self) -> str:
        """The path of the page of local mail with the token, as the start prints it."""
        secret = (self.home / "secret_key").read_text(encoding="ascii").strip()
        return f"/mail#{derive_mail_token(secret)}"

    @property
    def process(self) -> subprocess.Popen[str]:
        """The supervisor's process."""
        assert self._process is not None
        return self._process

    @property
    def started(self) -> bool:
        """Whether a supervisor was ever started."""
        return self._process is not None

    @property
    def is_up(self) -> bool:
        """Whether the whole service came up and the supervisor still runs."""
        runs = self._process is not None and self._process.poll() is None
        return runs and any(UP in line for line in self.lines)

    def environment(self) -> dict[str, str]:
        """Returns the supervisor's environment."""
        ours = {
            "FRESHET_HOME": str(self.home),
            "FRESHET_HTTP_PORT": str(self.http),
            "FRESHET_KAFKA_PORT": str(self.kafka),
            "FRESHET_TLS_PORT": str(self.tls),
            "FRESHET_GATEWAY_KAFKA_PORTS": str(self.kafka_ports),
            "FRESHET_LIMITS_SIGNUPS_PER_ADDRESS": "1000",
        }
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("FRESHET_", "DJANGO_"))}
        return {**kept, **ours, **self._extra}

    def start(self, wrapper: Iterable[str] = ()) -> Run:
        """Starts the supervisor and returns at once."""
        self._process = subprocess.Popen(
            [*wrapper, sys.executable, "manage.py", "up"],
            cwd=ROOT,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read_lines, daemon=True)
        self._reader.start()
        return self

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._line_read:
                self.lines.append(line.rstrip())
                self._line_read.notify_all()
        with self._line_read:
            self._line_read.notify_all()

    def wait_for_line(self, pattern: str, timeout_s: float = UP_TIMEOUT_S) -> str:
        """Returns the first line that matches; fails where the run ends or `timeout_s` passes
        first.
        """
        expression = re.compile(pattern)

        def matching_line() -> str | None:
            return next((line for line in self.lines if expression.search(line)), None)

        with self._line_read:
            self._line_read.wait_for(lambda: matching_line() or self._ended(), timeout_s)
            line = matching_line()
        assert line is not None, f"no line like {pattern!r}:\n" + "\n".join(self.lines[-80:])
        return line

    def _ended(self) -> bool:
        return self._reader is not None and not self._reader.is_alive()

    def up(self) -> Run:
        """Starts the service and waits until all of it is up."""
        self.start()
        self.wait_for_line(UP)
        return self

    def children(self) -> dict[str, Identity]:
        """Returns the identities of the recorded children by name."""
        content = json.loads((self.home / "run.json").read_text())
        return {c["name"]: Identity(c["pid"], c["started"]) for c in content["children"]}

    def mark(self) -> str:
        """Returns the value of `FRESHET_RUN` in the environment of this run's processes."""
        return str(json.loads((self.home / "run.json").read_text())["run"])

    def family(self) -> list[Identity]:
        """Returns the recorded children that run, and the processes that carry the run's mark."""
        if not (self.home / "run.json").exists():
            return []
        content = json.loads((self.home / "run.json").read_text())
        processes = set()
        for child in content["children"]:
            leader = Identity(child["pid"], child["started"])
            if is_running(leader):
                processes.add(leader)
            processes |= set(members_of(child["pid"], f"FRESHET_RUN={content['run']}"))
        return sorted(processes, key=lambda identity: identity.pid)

    def brokers(self) -> list[Identity]:
        """Returns the brokers whose settings file is below this home."""
        brokers = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                ours = any(str(self.home).encode() in word for word in words)
                if b"brokers" in words and b"serve" in words and ours:
                    identity = identify_process(int(entry.name))
                    brokers += [identity] if identity else []
        return brokers

    def kill_supervisor(self) -> None:
        """Kills the supervisor alone by SIGKILL."""
        self.process.kill()
        self._close_pipe()

    def kill_everything(self) -> None:
        """Kills the supervisor, all of its children and all brokers by SIGKILL."""
        self.kill_supervisor()
        for identity in [*self.family(), *self.brokers()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(identity.pid, signal.SIGKILL)
        wait_until(
            lambda: not self.family() and not self.brokers(), "all killed processes have ended"
        )

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Asks the supervisor to stop; returns its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Waits for the supervisor's end; returns its exit status."""
        try:
            status = self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            message = "the supervisor did not end:\n" + "\n".join(self.lines[-40:])
            raise AssertionError(message) from None
        self._close_pipe()
        return status

    def _close_pipe(self) -> None:
        """Reads the last lines and closes the pipe."""
        self.process.wait()
        assert self._reader is not None
        self._reader.join(5)
        if self.process.stdout is not None:
            self.process.stdout.close()
