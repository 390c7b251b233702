"""One broker of a cluster as a local process: started, watched, started again, stopped."""

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
from provisioning.cell.drivers.process import Identity, Process, adopt, identify, spawn

LOGGER = logging.getLogger(__name__)

# After a defect.
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
    # A broker that does not serve by then is killed and started again.
    start_timeout_s: float = 120.0
    # From SIGTERM to SIGKILL. The broker itself gives a clean stop up a little earlier.
    stop_timeout_s: float = 30.0
    # The same where somebody waits for the next start: a killed broker loses nothing either.
    stop_timeout_awaited_s: float = 2.0
    # How often a starting broker's output is looked at.
    ready_poll_s: float = 0.005


class Wish(Enum):
    """What a slot shall do."""

    # An earlier keeper's broker, until the keeper says what it wants.
    LEAVE = auto()
    RUN = auto()
    STOP = auto()


class Slot:
    """A broker that is kept running while it is wanted. `changed` is called when it changed."""

    def __init__(
        self, number: int, files: SlotFiles, options: LocalOptions, changed: Callable[[], None]
    ) -> None:
        self.number = number
        self.restarts = 0
        self._files = files
        self._options = options
        self._changed = changed
        self._name = f"{files.folder.parent.name}/{number}"
        self._log = LogTail(files.log, options.log, self._say)
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

    def survivor(self) -> Identity | None:
        """The process that an earlier keeper wrote down, if it still runs."""
        identity = self._files.read_state()
        return identity if identity and identify(identity.pid) == identity else None

    def adopt(self, identity: Identity) -> None:
        """Takes over a broker that an earlier keeper left running. It is left alone until asked."""
        self._process = adopt(identity)
        if self._process is None:
            return
        self._started_at = _now()
        self._find_endpoints()
        LOGGER.info("%s: took over, pid %d", self._name, identity.pid)
        self._task = asyncio.create_task(self._run(), name=f"slot {self._name}")

    def want(self, plan: BrokerPlan) -> None:
        """Has it run, from its next start with this plan."""
        changed = self._failed or self._wish is not Wish.RUN
        if self._failed:
            self._failed, self._ends, self._waiting_until = False, Ends(), 0.0
        self._plan, self._wish = plan, Wish.RUN
        if self.gone:
            self._task = asyncio.create_task(self._run(), name=f"slot {self._name}")
        if changed:
            self._requested.set()
            self._changed()

    def unwant(self, *, clean: bool) -> None:
        """Has it stop; not `clean` means at once."""
        changed = self._wish is not Wish.STOP
        self._wish = Wish.STOP
        if not clean and self._process is not None:
            self._asked = True
            self._kill("stopped by force")
        if changed:
            self._requested.set()
            self._changed()

    def replace(self) -> None:
        """Ends it by force; where it is wanted, it is started again."""
        self._kill("served nobody any more, and was replaced")

    @property
    def gone(self) -> bool:
        """Whether nothing runs and nothing will."""
        return self._task is None or self._task.done()

    async def wait_gone(self) -> None:
        """Waits until nothing runs. Only after `unwant`."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def release(self) -> None:
        """Watches it no longer; it goes on by itself."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._process is not None:
            self._process.release()
            self._process = None

    def look_at_log(self) -> None:
        """Passes on what it logged, and rotates the log."""
        self._log.look()
        try:
            self._log.rotate(in_use=self._process is not None)
        except OSError as error:
            LOGGER.warning("%s: its log was not rotated: %s", self._name, error)

    def observe(self) -> BrokerObservation:
        """What it does now."""
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
        """Until nothing runs and nothing is wanted."""
        while self._process is not None or self._wish is Wish.RUN:
            self._requested.clear()
            try:
                ended = self._turn()
            except Exception:
                # A defect here must not leave a broker without anybody who watches it.
                LOGGER.exception("%s: a turn failed", self._name)
                await asyncio.sleep(RETRY_S)
                continue
            if not ended:
                await self._next(self._timeout_s())
        self._changed()

    def _turn(self) -> bool:
        """Does what is due. True where the broker ended, and there may be more to do at once."""
        if self._process is None:
            self._start_when_due()
        elif self._process.ended.done():
            self._on_end(self._process)
            return True
        elif self._wish is Wish.STOP or self._stop_sent_at is not None:
            self._press()
        elif self._endpoints is None:
            self._await_ready()
        return False

    async def _next(self, timeout_s: float | None) -> None:
        """Waits for the process's end, a request or the time."""
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
            self._process = spawn(command, output=self._files.output, errors=self._files.log)
        except (OSError, ConfigError) as error:
            self._ends = self._options.backoff.after(self._ends, None)
            self._on_failure(f"did not start: {error}")
            return
        self._started_at, self._served_at = _now(), None
        self._stop_sent_at, self._asked, self._killed, self._endpoints = None, False, "", None
        # Without it the next keeper still finds the process by its settings file.
        with contextlib.suppress(OSError):
            self._files.write_state(self._process.identity)
        self._changed()

    def _await_ready(self) -> None:
        if self._find_endpoints():
            took_ms = (_now() - self._started_at) * 1000
            pid = 0 if self._process is None else self._process.pid
            LOGGER.info("%s: serves after %.0f ms, pid %d", self._name, took_ms, pid)
            self._changed()
        elif _now() - self._started_at > self._options.start_timeout_s:
            self._kill("did not serve in time, and was killed")

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

    def _press(self) -> None:
        """Asks it to stop, later kills it."""
        if self._process is None:
            return
        if self._stop_sent_at is None:
            self._stop_sent_at, self._asked = _now(), True
            self._process.send(signal.SIGTERM)
        elif not self._killed and _now() >= self._stop_until():
            LOGGER.warning("%s: did not stop in time, and is killed", self._name)
            self._kill("did not stop in time")

    def _kill(self, why: str) -> None:
        if self._process is not None:
            self._stop_sent_at = self._stop_sent_at or _now()
            self._killed = why
            self._process.send(signal.SIGKILL)

    def _on_end(self, process: Process) -> None:
        status = process.ended.result()
        served_s = None if self._served_at is None else _now() - self._served_at
        self._process, self._endpoints, self._stop_sent_at = None, None, None
        with contextlib.suppress(OSError):
            self._files.state.unlink(missing_ok=True)
        self._log.look()
        process.release()
        if self._asked or self._wish is not Wish.RUN:
            LOGGER.info("%s: ended, %s", self._name, _how(status))
            self._ends, self._waiting_until = Ends(), 0.0
        else:
            self.restarts += 1
            said = f": {self._log.last_line}" if status in {EXIT_NOT_STARTED, EXIT_USAGE} else ""
            self._failed = status == EXIT_USAGE
            stood_down = status == EXIT_STOOD_DOWN
            backoff = self._options.backoff
            self._ends = backoff.after(self._ends, served_s, stood_down=stood_down)
            self._on_failure(self._killed or f"{_how(status)}{said}")
        self._changed()

    def _on_failure(self, message: str) -> None:
        pause_s = self._options.backoff.pause_s(self._ends)
        self._waiting_until = _now() + pause_s
        self._message = message
        then = "waits for a change" if self._failed else f"starts again in {pause_s:.1f} s"
        LOGGER.warning("%s: %s; %s", self._name, message, then)
        self._changed()

    def _say(self, line: str) -> None:
        sys.stderr.write(f"{self._name} | {line}\n")


def _now() -> float:
    return asyncio.get_running_loop().time()


def _how(status: int | None) -> str:
    """How a process ended, in words."""
    if status is None:
        return "ended"
    if status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return EXITS.get(status, f"ended with status {status}")
