"""One broker of a cluster as a local process: starts, watches, restarts and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from brokers.backoff import Backoff, Ends
from brokers.errors import ConfigError
from provisioning.cell.drivers.base import BrokerObservation, BrokerPlan, BrokerState, Endpoints
from provisioning.cell.drivers.files import SlotFiles
from provisioning.cell.drivers.logs import LogLimits, LogTail
from provisioning.cell.drivers.process import (
    Identity,
    Process,
    adopt_process,
    identify_process,
    spawn_process,
)

LOGGER = logging.getLogger(__name__)

# Pause after an exception in the slot's own code, so that a defect does not make a busy loop.
RETRY_S = 1.0

# Exit statuses of `python -m brokers serve`, see `brokers/server.py`.
EXIT_NOT_STARTED = 1
EXIT_USAGE = 2
EXIT_STOOD_DOWN = 3
EXITS = {
    0: "stopped",
    EXIT_NOT_STARTED: "did not start",
    EXIT_USAGE: "refused its settings",
    EXIT_STOOD_DOWN: "stood down",
}


@dataclass(frozen=True)
class LocalOptions:
    """How local brokers are run. Times are in seconds."""

    # What starts a broker; the path of its settings file is appended.
    command: Sequence[str] = (sys.executable, "-m", "brokers", "serve", "--config")
    backoff: Backoff = field(default_factory=Backoff)
    log: LogLimits = field(default_factory=LogLimits)
    # A broker that does not serve within this time is killed and started again.
    start_timeout_s: float = 120.0
    # Time from SIGTERM to SIGKILL. The broker itself gives up a clean stop a little earlier.
    stop_timeout_s: float = 30.0
    # The same where the next start waits for the stop: a killed broker loses no records either.
    stop_timeout_awaited_s: float = 2.0
    # Interval at which the output of a starting broker is read.
    ready_poll_s: float = 0.005


class Wish(Enum):
    """What the keeper requested of a slot."""

    # The broker of an earlier keeper is left alone until the first request.
    LEAVE = auto()
    RUN = auto()
    STOP = auto()


class Slot:
    """Keeps one broker running until it is stopped. Calls `changed` after each change of state."""

    def __init__(
        self, number: int, files: SlotFiles, options: LocalOptions, changed: Callable[[], None]
    ) -> None:
        self.number = number
        self.restarts = 0
        self._files = files
        self._options = options
        self._on_change = changed
        self._name = f"{files.folder.parent.name}/{number}"
        self._log = LogTail(files.log, options.log, self._print_log_line)
        self._wish = Wish.LEAVE
        self._plan: BrokerPlan | None = None
        self._process: Process | None = None
        self._endpoints: Endpoints | None = None
        self._ends = Ends()
        self._failed = False
        self._message = ""
        self._waiting_until = 0.0
        self._started_at = 0.0
        self._served_at: float | None = None
        self._stop_sent_at: float | None = None
        self._asked = False
        self._killed = ""
        self._requested = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def surviving_process(self) -> Identity | None:
        """The process that an earlier keeper recorded, if it still runs; else None."""
        identity = self._files.read_state()
        return identity if identity and identify_process(identity.pid) == identity else None

    def adopt(self, identity: Identity) -> None:
        """Takes over a broker that an earlier keeper left running, and only watches it so far."""
        self._process = adopt_process(identity)
        if self._process is None:
            return
        self._started_at = _now()
        self._find_endpoints()
        LOGGER.info("%s: took over, pid %d", self._name, identity.pid)
        self._task = asyncio.create_task(self._run(), name=f"slot {self._name}")

    def keep_running(self, plan: BrokerPlan) -> None:
        """Keeps the broker running. The plan's settings count from its next start."""
        changed = self._failed or self._wish is not Wish.RUN
        if self._failed:
            self._failed, self._ends, self._waiting_until = False, Ends(), 0.0
        self._plan, self._wish = plan, Wish.RUN
        if self.gone:
            self._task = asyncio.create_task(self._run(), name=f"slot {self._name}")
        if changed:
            self._requested.set()
            self._on_change()

    def stop(self, *, clean: bool) -> None:
        """Stops the broker: cleanly with SIGTERM, or else at once with SIGKILL."""
        changed = self._wish is not Wish.STOP
        self._wish = Wish.STOP
        if not clean and self._process is not None:
            self._asked = True
            self._kill_process("stopped by force")
        if changed:
            self._requested.set()
            self._on_change()

    def replace(self) -> None:
        """Kills the broker. Unless it is to stop, it is started again."""
        self._kill_process("served nobody any more, and was replaced")

    @property
    def gone(self) -> bool:
        """Whether no broker runs and none will be started."""
        return self._task is None or self._task.done()

    async def wait_gone(self) -> None:
        """Waits until the broker has ended. Call it only after `stop`."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def release(self) -> None:
        """Stops watching the broker, which goes on running."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._process is not None:
            self._process.release()
            self._process = None

    def look_at_log(self) -> None:
        """Prints new lines of the broker's log, and rotates the log where it is full."""
        self._log.look()
        try:
            self._log.rotate(in_use=self._process is not None)
        except OSError as error:
            LOGGER.warning("%s: its log could not be rotated: %s", self._name, error)

    def observe(self) -> BrokerObservation:
        """The broker as it is now."""
        pid = None if self._process is None else self._process.pid
        return BrokerObservation(
            slot=self.number,
            state=self._state(),
            name="" if pid is None else f"pid {pid}",
            endpoints=self._endpoints,
            failures=self._ends.unserved if self._endpoints is None else 0,
            message=self._message,
            pid=pid,
        )

    def _state(self) -> BrokerState:
        if self._process is None:
            return BrokerState.FAILED if self._failed else BrokerState.WAITING
        if self._stop_sent_at is not None or self._wish is Wish.STOP:
            return BrokerState.STOPPING
        return BrokerState.STARTING if self._endpoints is None else BrokerState.RUNNING

    async def _run(self) -> None:
        """Runs until the broker has ended and is not to run again."""
        while self._process is not None or self._wish is Wish.RUN:
            self._requested.clear()
            try:
                ended = self._do_what_is_due()
            except Exception:
                # A defect here must not end the task, which alone watches and restarts the broker.
                LOGGER.exception("%s: a step of this slot failed and is repeated", self._name)
                await asyncio.sleep(RETRY_S)
                continue
            if not ended:
                await self._wait_for_event(self._timeout_s())
        self._on_change()

    def _do_what_is_due(self) -> bool:
        """Does the next step.

        Returns True where the broker ended: the next step may be due at once.
        """
        if self._process is None:
            self._start_when_due()
        elif self._process.ended.done():
            self._on_end(self._process)
            return True
        elif self._wish is Wish.STOP or self._stop_sent_at is not None:
            self._stop_or_kill()
        elif self._endpoints is None:
            self._await_ready()
        return False

    async def _wait_for_event(self, timeout_s: float | None) -> None:
        """Waits for the end of the process, a request, or until `timeout_s` has passed."""
        request = asyncio.ensure_future(self._requested.wait())
        waits: set[asyncio.Future[Any]] = {request}
        if self._process is not None:
            waits.add(self._process.ended)
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            request.cancel()

    def _timeout_s(self) -> float | None:
        if self._process is None:
            return None if self._failed else max(self._waiting_until - _now(), 0.0)
        if self._stop_sent_at is not None:
            return None if self._killed else max(self._stop_until() - _now(), 0.0)
        return self._options.ready_poll_s if self._endpoints is None else None

    def _start_when_due(self) -> None:
        if self._failed or self._plan is None or _now() < self._waiting_until:
            return
        try:
            self._files.write_settings(self._plan.start_settings())
            self._log.rotate(in_use=False)
            command = [*self._options.command, str(self._files.settings)]
            self._process = spawn_process(
                command, output=self._files.output, errors=self._files.log
            )
        except (OSError, ConfigError) as error:
            self._ends = self._options.backoff.after(self._ends, None)
            self._on_failure(f"did not start: {error}")
            return
        self._started_at, self._served_at = _now(), None
        self._stop_sent_at, self._asked, self._killed, self._endpoints = None, False, "", None
        # Where this fails, the next keeper still recognises the process by its settings file.
        with contextlib.suppress(OSError):
            self._files.write_state(self._process.identity)
        self._on_change()

    def _await_ready(self) -> None:
        if self._find_endpoints():
            took_ms = (_now() - self._started_at) * 1000
            pid = 0 if self._process is None else self._process.pid
            LOGGER.info("%s: serves after %.0f ms, pid %d", self._name, took_ms, pid)
            self._on_change()
        elif _now() - self._started_at > self._options.start_timeout_s:
            self._kill_process("did not serve in time, and was killed")

    def _find_endpoints(self) -> bool:
        self._endpoints = self._files.read_endpoints()
        if self._endpoints is None:
            return False
        self._served_at, self._message = _now(), ""
        return True

    def _stop_until(self) -> float:
        awaited = self._wish is Wish.RUN
        limit_s = self._options.stop_timeout_s
        limit_s = min(limit_s, self._options.stop_timeout_awaited_s) if awaited else limit_s
        return (self._stop_sent_at or 0.0) + limit_s

    def _stop_or_kill(self) -> None:
        """Sends SIGTERM first, and SIGKILL once the time for a clean stop is over."""
        if self._process is None:
            return
        if self._stop_sent_at is None:
            self._stop_sent_at, self._asked = _now(), True
            self._process.send(signal.SIGTERM)
        elif not self._killed and _now() >= self._stop_until():
            LOGGER.warning("%s: did not stop in time, and is killed", self._name)
            self._kill_process("did not stop in time")

    def _kill_process(self, why: str) -> None:
        if self._process is not None:
            self._stop_sent_at = self._stop_sent_at or _now()
            self._killed = why
            self._process.send(signal.SIGKILL)

    def _on_end(self, process: Process) -> None:
        status = process.ended.result()
        if self._endpoints is None and not self._killed:
            # It may have served, and ended, since the last poll of its output.
            self._find_endpoints()
        served_s = None if self._served_at is None else _now() - self._served_at
        self._process, self._endpoints, self._stop_sent_at = None, None, None
        with contextlib.suppress(OSError):
            self._files.state.unlink(missing_ok=True)
        self._log.look()
        process.release()
        if self._asked or self._wish is not Wish.RUN:
            LOGGER.info("%s: ended, %s", self._name, _describe_status(status))
            self._ends, self._waiting_until = Ends(), 0.0
        else:
            self.restarts += 1
            last_line = (
                f": {self._log.last_line}" if status in {EXIT_NOT_STARTED, EXIT_USAGE} else ""
            )
            self._failed = status == EXIT_USAGE
            stood_down = status == EXIT_STOOD_DOWN
            backoff = self._options.backoff
            self._ends = backoff.after(self._ends, served_s, stood_down=stood_down)
            self._on_failure(self._killed or f"{_describe_status(status)}{last_line}")
        self._on_change()

    def _on_failure(self, message: str) -> None:
        pause_s = self._options.backoff.pause_s(self._ends)
        self._waiting_until = _now() + pause_s
        self._message = message
        then = "waits for a change" if self._failed else f"starts again in {pause_s:.1f} s"
        LOGGER.warning("%s: %s; %s", self._name, message, then)
        self._on_change()

    def _print_log_line(self, line: str) -> None:
        sys.stderr.write(f"{self._name} | {line}\n")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _describe_status(status: int | None) -> str:
    """How a process ended, as a text for people. `status`: see `Process.ended`."""
    if status is None:
        return "ended"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return EXITS.get(status, f"ended with status {status}")
