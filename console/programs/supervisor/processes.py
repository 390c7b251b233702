"""Identifies processes through /proc, also where a process id was given to another process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_STATE, _SESSION, _START = 0, 3, 19  # fields of /proc/<pid>/stat after the command, see proc(5)


@dataclass(frozen=True)
class Identity:
    """One process for certain: its id, and when it started, in clock ticks since boot."""

    pid: int
    started: int


def _stat_fields(pid: int) -> list[str] | None:
    """Returns the fields of /proc/<pid>/stat from the state on; None where no such process runs."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    # A zombie (Z) has ended and only waits for its parent to read its status.
    return None if not fields or fields[_STATE] in {"Z", "X"} else fields


def identify_process(pid: int) -> Identity | None:
    """Returns the identity of a running process; None where no process has the id."""
    fields = _stat_fields(pid)
    return Identity(pid, int(fields[_START])) if fields else None


def is_running(identity: Identity) -> bool:
    """Returns whether exactly this process still runs."""
    return identify_process(identity.pid) == identity


def boot_id() -> str:
    """Returns an id of the machine's boot: start times of another boot mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def _all_pids() -> list[int]:
    return sorted(int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def members_of(session: int, marker: str) -> list[Identity]:
    """Returns the processes of a session whose environment holds `marker` (`NAME=value`)."""
    members = []
    for pid in _all_pids():
        fields = _stat_fields(pid)
        if fields is None or int(fields[_SESSION]) != session:
            continue
        try:
            environment = (_PROC / str(pid) / "environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in environment.split(b"\0"):
            members.append(Identity(pid, int(fields[_START])))
    return members


def working_in(folder: Path, program: str) -> list[int]:
    """Returns the ids of the processes that run `program` with `folder` as their working folder."""
    pids = []
    for pid in _all_pids():
        entry = _PROC / str(pid)
        try:
            where, what = (entry / "cwd").readlink(), (entry / "exe").readlink()
        except OSError:  # gone, or another user's
            continue
        if where == folder and what.name.removesuffix(" (deleted)") == program:
            pids.append(pid)
    return pids


def listener_on(port: int) -> str | None:
    """Returns who listens on a TCP port of this machine, as `name (pid n)`.

    Returns None where nobody does, or where the process belongs to another account.
    """
    inodes = _listening_inodes(port)
    if not inodes:
        return None
    for pid in _all_pids():
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


def lower_session(pid: int, niceness: int) -> bool:
    """Lowers the priority of a process's session against other sessions (sched(7), autogroups).

    Returns False where the kernel wants it to be tried again in a moment. Where sessions have no
    priority, or the process has ended, there is nothing to do.
    """
    try:
        (_PROC / str(pid) / "autogroup").write_text(str(niceness))
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True
