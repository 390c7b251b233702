"""One child process: it is started, read, started again when it ends, and stopped in a bounded
time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from console.programs.supervisor.conditions import Condition
from console.programs.supervisor.errors import StartError, disk_full_sentence, names_full_disk
from console.programs.supervisor.leftovers import Record
from console.programs.supervisor.output import Output
from console.programs.supervisor.processes import lower_session

STARTS_MAX = 3
BACK_OFF_FIRST_S = 0.25
BACK_OFF_MAX_S = 30.0
STEADY_S = 60.0
_POLL_S = 0.05
_LAST_WORDS_S = 1.0
_LINE_BYTES_MAX = 64 * 1024
_LINES_MAX = 200
# The kernel lowers one session in 100 ms for all that are not root.
_LOWERING_TRIES, _LOWERING_WAIT_S = 20, 0.1


@dataclass(frozen=True)
class Account:
    """The user and group that a child runs as, where it may not run as root."""

    uid: int
    gid: int


@dataclass(frozen=True)
class ChildSpec:
    """What to start, and the condition that holds once it is up.

    `after`: names of the children that must be up before. `own_session`: whether every process of
    its session is killed once it has ended; not so for the keeper, whose brokers outlive it.
    `routine`: a pattern of lines that go to the log only, as they say nothing to a person.
    `niceness`: how much its priority is lower than that of the others.
    """

    name: str
    command: tuple[str, ...]
    ready: Condition
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    start_timeout_s: float = 60.0
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 10.0
    account: Account | None = None
    own_session: bool = True
    routine: re.Pattern[str] | None = None
    niceness: int = 0


def back_off_s(deaths: int) -> float:
    """Returns how many seconds to wait before the next start.

    `deaths`: how often it ended in a row.
    """
    return float(min(BACK_OFF_MAX_S, BACK_OFF_FIRST_S * 2 ** (deaths - 1)))


class Child:
    """Keeps one process running from `start` until `stop`."""

    def __init__(self, spec: ChildSpec, output: Output, record: Record, home: Path) -> None:
        self.spec = spec
        self._output = output
        self._record = record
        self._home = home
        self._process: asyncio.subprocess.Process | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._failed: StartError | None = None
        self._lines: list[str] = []
        self.is_up = asyncio.Event()

    @property
    def pid(self) -> int | None:
        """The process id; None while no process runs."""
        process = self._process
        return process.pid if process and process.returncode is None else None

    async def start(self) -> None:
        """Starts the process, keeps it running until `stop`, and returns once its condition holds.

        Raises `StartError` where the condition does not hold within `start_timeout_s`, or the
        process ends three times in a row (`STARTS_MAX`) before. Then too the caller must call
        `stop`: the process may still run.
        """
        self._keeping = asyncio.create_task(self._keep_running())
        try:
            async with asyncio.timeout(self.spec.start_timeout_s):
                while not await self._is_ready():
                    if self._failed is not None:
                        raise self._failed
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise self._start_error(
                f"{self.spec.name} did not {self.spec.ready.sentence}"
                f" within {self.spec.start_timeout_s:.0f} s"
            ) from None
        self.is_up.set()

    async def stop(self) -> None:
        """Asks the process to end, kills it after `stop_timeout_s`, and waits for its end."""
        self._stopping.set()
        process = self._process
        if process is not None and process.returncode is None:
            self._send_signal(self.spec.stop_signal)
            try:
                async with asyncio.timeout(self.spec.stop_timeout_s):
                    await process.wait()
            except TimeoutError:
                self._say(f"did not stop within {self.spec.stop_timeout_s:.0f} s: killed")
                self.kill()
                await process.wait()
        if self._keeping is not None:
            await self._keeping

    def kill(self) -> None:
        """Kills the process and every other process of its session at once."""
        self._stopping.set()
        self._send_signal(signal.SIGKILL)
        self._kill_session()

    async def _is_ready(self) -> bool:
        return self.pid is not None and await self.spec.ready.holds(self._lines)

    async def _keep_running(self) -> None:
        deaths = 0
        clock = asyncio.get_running_loop().time
        while not self._stopping.is_set():
            begun = clock()
            how = await self._run_once()
            if self._stopping.is_set():
                return
            deaths = 1 if clock() - begun > STEADY_S else deaths + 1
            if not self.is_up.is_set() and deaths >= STARTS_MAX:
                self._failed = self._start_error(f"{self.spec.name} did not start ({how})")
                return
            delay_s = back_off_s(deaths)
            self._say(f"ended unexpectedly ({how}); starting it again in {delay_s:g} s")
            if names_full_disk(self._output.tail(self.spec.name)):
                self._say(disk_full_sentence(self._home))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay_s)

    async def _run_once(self) -> str:
        """Runs the process to its end; returns how it ended (see `_describe_exit`)."""
        self._lines = []
        account = self.spec.account
        reading, writing = os.pipe()
        lines, transport = await _open_reader(reading)
        try:
            process = await asyncio.create_subprocess_exec(
                *_command(self.spec),
                cwd=self.spec.folder,
                env=dict(self.spec.environment),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                # A session of its own: the terminal's Ctrl-C reaches only the supervisor, which
                # stops everything in order.
                start_new_session=True,
                user=account.uid if account else None,
                group=account.gid if account else None,
                extra_groups=[] if account else None,
            )
        except OSError as error:
            transport.close()
            return str(error)
        finally:
            os.close(writing)
        self._process = process
        if self._stopping.is_set():  # asked to stop while it was being started
            self._send_signal(self.spec.stop_signal)
        self._record_process(process.pid)
        passing = asyncio.create_task(self._pass_on(lines))
        lowering = asyncio.create_task(_lower(process.pid, self.spec.niceness))
        code = await process.wait()
        lowering.cancel()
        if self.spec.own_session:
            self._kill_session()
        # The last lines are read for a moment only: a descendant may hold the pipe open for longer.
        await asyncio.wait({passing}, timeout=_LAST_WORDS_S)
        passing.cancel()
        transport.close()
        return _describe_exit(code)

    def _record_process(self, pid: int) -> None:
        spec = self.spec
        try:
            self._record.add(spec.name, pid, spec.stop_signal, members=spec.own_session)
        except OSError as error:
            self._say(f"could not be recorded: {error}")

    async def _pass_on(self, stream: asyncio.StreamReader) -> None:
        while True:
            try:
                raw = await stream.readline()
            except ValueError:  # a line longer than the limit: what was read of it is dropped
                continue
            if not raw:
                return
            line = raw.decode(errors="replace").rstrip()
            if not self.is_up.is_set() and len(self._lines) < _LINES_MAX:
                self._lines.append(line)
            routine = self.spec.routine is not None and self.spec.routine.search(line) is not None
            self._output.say(self.spec.name, line, shown=not routine)

    def _start_error(self, what: str) -> StartError:
        lines = self._output.tail(self.spec.name)
        if names_full_disk(lines):
            return StartError(disk_full_sentence(self._home), lines)
        return StartError(f"{what}. Its last lines, all in {self._log_name()}:", lines)

    def _log_name(self) -> str:
        return str(self._home / "log" / f"{self.spec.name}.log")

    def _say(self, what: str) -> None:
        self._output.say("freshet", f"{self.spec.name} {what}")

    def _send_signal(self, number: signal.Signals) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    def _kill_session(self) -> None:
        """Kills the process group that the child leads; the supervisor is in another one."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)


def _command(spec: ChildSpec) -> tuple[str, ...]:
    niceness = ("nice", "-n", str(spec.niceness)) if spec.niceness else ()
    return (*niceness, *spec.command)


async def _lower(pid: int, niceness: int) -> None:
    """Lowers the priority of a child's session, too.

    Where the kernel schedules by sessions, niceness counts only within a child's own.
    """
    for _ in range(_LOWERING_TRIES if niceness else 0):
        if lower_session(pid, niceness):
            return
        await asyncio.sleep(_LOWERING_WAIT_S)


async def _open_reader(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    """Returns a reader of a pipe's lines and the transport that closes the pipe."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_LINE_BYTES_MAX)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    return reader, transport


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
