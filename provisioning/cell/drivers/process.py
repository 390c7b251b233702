"""Processes of this machine: started, recognised after the starter's death, watched, signalled.

A pid alone means little: it is used again. A process is known by its pid and the moment it started
(`/proc/<pid>/stat`, field 22 of proc(5), in clock ticks since the boot that
`/proc/sys/kernel/random/boot_id` names), and is watched and signalled by a pidfd where there are
such: that never reaches another process.
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
# How often a process is looked at where the kernel cannot tell of its end.
POLL_S = 0.05


@dataclass(frozen=True)
class Identity:
    """One process and no other, on this boot of this machine."""

    pid: int
    started: str


def identify(pid: int) -> Identity | None:
    """The process that has this pid; None where there is none, or only what is left of one."""
    try:
        text = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        boot = (PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    # The command's name may hold anything; the fields after it are counted from its parenthesis.
    fields = text.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    return None if state in "ZX" else Identity(pid, f"{boot}/{ticks}")


def find(flag: str, values: Container[str]) -> dict[str, Identity]:
    """Processes of this user's whose command line has `flag` and then one of `values`, by value.

    Finds a broker by its settings file, where its keeper died before it wrote the pid down.
    """
    found = {}
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid != os.getuid():
                continue
            arguments = [os.fsdecode(a) for a in (folder / "cmdline").read_bytes().split(b"\0")]
            for before, value in pairwise(arguments):
                if before == flag and value in values and (identity := identify(int(folder.name))):
                    found[value] = identity
    return found


class Process:
    """A process that is watched. `ended` is done once it ended.

    Its result is the exit status, negative for a signal, or None where only its parent would know.
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
            self._polling = asyncio.create_task(self._poll())

    @property
    def pid(self) -> int:
        """Its pid."""
        return self.identity.pid

    def send(self, number: signal.Signals) -> None:
        """Sends it a signal, if it is still there."""
        if self.ended.done():
            return
        with contextlib.suppress(ProcessLookupError):
            if self._child is not None:
                self._child.send_signal(number)
            elif self._pidfd is not None:
                signal.pidfd_send_signal(self._pidfd, number)
            elif identify(self.pid) == self.identity:
                os.kill(self.pid, number)

    def release(self) -> None:
        """Watches it no longer. It goes on by itself."""
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._polling is not None:
            self._polling.cancel()
        if self._child is not None and self._child.returncode is None:
            # Nobody waits for it here any more, on purpose: without this a warning would say so.
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

    async def _poll(self) -> None:
        while identify(self.pid) == self.identity:
            await asyncio.sleep(POLL_S)
        self._on_end()


def spawn(command: Sequence[str], *, output: Path, errors: Path) -> Process:
    """Starts a process of its own session, which outlives us. Raises `OSError`.

    Standard output goes to a new file, so that a predecessor cannot write into it, and standard
    error is appended to `errors`; both are private. Of our environment it gets what finds programs
    and libraries, and no variable that may hold a secret.
    """
    output.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    with contextlib.ExitStack() as files:
        out = os.open(output, flags, 0o600)
        files.callback(os.close, out)
        err = os.open(errors, flags, 0o600)
        files.callback(os.close, err)
        # The console's Ctrl-C is for us: in a session of its own a child never sees it.
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=_environment(os.environ),
            start_new_session=True,
        )
    # It stays ours until we wait for it, so its pid is its own.
    identity = identify(child.pid) or Identity(child.pid, "")
    return Process(identity, child, _pidfd(child.pid))


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in ours.items() if PASSED_ON.fullmatch(name)}


def adopt(identity: Identity) -> Process | None:
    """Watches a process that somebody else started; None where it is gone."""
    pidfd = _pidfd(identity.pid)
    # Asked after the pidfd was opened, so that both are about the same process.
    if identify(identity.pid) != identity:
        if pidfd is not None:
            os.close(pidfd)
        return None
    return Process(identity, None, pidfd)


def _pidfd(pid: int) -> int | None:
    opener: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    with contextlib.suppress(OSError):
        return opener(pid)
    return None
