"""Processes of this machine: starts, recognises, watches and signals them.

A pid alone does not identify a process, because the kernel uses it again. A process is identified
by its pid and the moment it started (`/proc/<pid>/stat`, field 22 of proc(5), in clock ticks since
the boot that `/proc/sys/kernel/random/boot_id` names). So a process is also recognised after the
one that started it has ended. Where the kernel has pidfds a process is watched and signalled
through one, which never reaches another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

PROC = Path("/proc")
PASSED_ON = re.compile(r"PATH|HOME|TZ|TMPDIR|LANG|LC_\w+|LD_\w+|PYTHON\w*|RUST_\w+|VIRTUAL_ENV")
# How often a process is polled where the kernel cannot report its end.
POLL_S = 0.05


@dataclass(frozen=True)
class Identity:
    """Identifies one process of this machine. `started`: boot id and start time in clock ticks."""

    pid: int
    started: str


def identify_process(pid: int) -> Identity | None:
    """The process that has this pid; None where there is none, or it has ended (a zombie)."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The command's name may hold anything; the fields after it are counted from its parenthesis.
    fields = text.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else Identity(pid, f"{boot}/{ticks}")


def find_processes(flag: str, values: Container[str]) -> dict[str, Identity]:
    """This user's processes whose command line has `flag` followed by one of `values`, by value.

    With it a broker is recognised by its settings file where the keeper died before it recorded
    the pid.
    """
    identities = {}
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid():
                continue
            arguments = [os.fsdecode(a) for a in (folder / "cmdline").read_bytes().split(b"\0")]
            for before, value in pairwise(arguments):
                if (
                    before == flag
                    and value in values
                    and (identity := identify_process(int(folder.name)))
                ):
                    identities[value] = identity
    return identities


class Process:
    """A watched process. The future `ended` is done once the process has ended.

    Its result is the exit status, negative for a signal, or None for a process that is not our
    child: only the parent of a process gets its exit status.
    """

    def __init__(
        self, identity: Identity, child: subprocess.Popen[bytes] | None, pidfd: int | None
    ) -> None:
        self.identity = identity
        self.ended: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._child = child
        self._pidfd = pidfd
        self._polling: asyncio.Task[None] | None = None
        if pidfd is not None:
            asyncio.get_running_loop().add_reader(pidfd, self._on_end)
        elif child is not None:
            self._wait_in_thread(child)
        else:
            self._polling = asyncio.create_task(self._poll_until_end())

    @property
    def pid(self) -> int:
        """The process id."""
        return self.identity.pid

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process, unless it has ended."""
        if self.ended.done():
            return
        with contextlib.suppress(ProcessLookupError):
            if self._child is not None:
                self._child.send_signal(number)
            elif self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif identify_process(self.pid) == self.identity:
                os.kill(self.pid, number)

    def release(self) -> None:
        """Stops watching the process, which goes on running."""
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._polling is not None:
            self._polling.cancel()
        if self._child is not None and self._child.returncode is None:
            # We stop waiting for this child on purpose: without a return code Popen would warn of
            # a child that still runs.
            self._child.returncode = 0
        self.ended.cancel()

    def _on_end(self) -> None:
        status = None if self._child is None else self._child.wait()
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if not self.ended.done():
            self.ended.set_result(status)

    def _wait_in_thread(self, child: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()

        def wait() -> None:
            child.wait()
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(self._on_end)

        threading.Thread(target=wait, name=f"wait-{child.pid}", daemon=True).start()

    async def _poll_until_end(self) -> None:
        while identify_process(self.pid) == self.identity:
            await asyncio.sleep(POLL_S)
        self._on_end()


def spawn_process(command: Sequence[str], *, output: Path, errors: Path) -> Process:
    """Starts a process in a session of its own, so that it outlives us. Raises `OSError`.

    Standard output goes to a new file, so that an earlier process cannot write into it, and
    standard error is appended to `errors`; both files are private. The process inherits only those
    variables of our environment that locate programs and libraries, and none that may hold a
    secret.
    """
    output.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with contextlib.ExitStack() as files:
        out = os.open(output, flags, 0o600)
        files.callback(os.close, out)
        err = os.open(errors, flags, 0o600)
        files.callback(os.close, err)
        # A Ctrl-C in the terminal is meant for us: a child in its own session does not get it.
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=_inherited_environment(os.environ),
            start_new_session=True,
        )
    # The kernel does not use the pid of a child again before we wait for it.
    identity = identify_process(child.pid) or Identity(child.pid, "")
    return Process(identity, child, _open_pidfd(child.pid))


def _inherited_environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in ours.items() if PASSED_ON.fullmatch(name)}


def adopt_process(identity: Identity) -> Process | None:
    """Watches a process that another process started; None where it has ended."""
    pidfd = _open_pidfd(identity.pid)
    # The identity is checked after the pidfd was opened, so both refer to the same process.
    if identify_process(identity.pid) != identity:
        if pidfd is not None:
            os.close(pidfd)
        return None
    return Process(identity, None, pidfd)


def _open_pidfd(pid: int) -> int | None:
    opener: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    with contextlib.suppress(OSError):
        return opener(pid)
    return None
