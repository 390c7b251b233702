"""Looking at processes through /proc: who they are, beyond a number that may be used again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_STATE, _SESSION, _START = 0, 3, 19  # fields of /proc/<pid>/stat after the command, see proc(5)


@dataclass(frozen=True)
class Identity:
    """A process beyond doubt: its number, and when it started in clock ticks since boot."""

    pid: int
    started: int


def _fields(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the state on; None when there is no such process."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie waits only for its parent to notice: it holds nothing and does nothing.
    return None if not fields or fields[_STATE] in {"Z", "X"} else fields


def identify(pid: int) -> Identity | None:
    """The identity of a process that runs; None if it does not."""
    fields = _fields(pid)
    return Identity(pid, int(fields[_START])) if fields else None


def is_running(identity: Identity) -> bool:
    """Tells whether exactly this process still runs."""
    return identify(identity.pid) == identity


def boot_id() -> str:
    """Changes with each boot of the machine: ticks of another boot mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _pids() -> list[int]:
    return sorted(int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def members_of(session: int, marker: str) -> list[Identity]:
    """Processes of a session whose environment holds `marker` (`NAME=value`)."""
    found = []
    for pid in _pids():
        fields = _fields(pid)
        if fields is None or int(fields[_SESSION]) != session:
            continue
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in environment.split(b"\0"):
            found.append(Identity(pid, int(fields[_START])))
    return found


def working_in(folder: Path, program: str) -> list[int]:
    """Numbers of the processes that run `program` with `folder` as their working folder."""
    found = []
    for pid in _pids():
        entry = _PROC / str(pid)
        try:
            where, what = (entry / "cwd").readlink(), (entry / "exe").readlink()
        except OSError:  # gone, or another user's
            continue
        if where == folder and what.name.removesuffix(" (deleted)") == program:
            found.append(pid)
    return found


def listener_on(port: int) -> str | None:
    """Who listens on a TCP port of this machine, as `name (pid n)`, if that may be seen."""
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    for pid in _pids():
        try:
            for descriptor in (_PROC / str(pid) / "fd").iterdir():
                if str(descriptor.readlink()) in inodes:
                    name = (_PROC / str(pid) / "comm").read_text().strip()
                    return f"{name} (pid {pid})"
        except OSError:
            continue
    return None


def _listening_inodes(port: int) -> set[str]:
    listening = "0A"
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = (_PROC / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == listening and int(fields[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{fields[9]}]")
    return inodes
