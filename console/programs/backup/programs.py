"""PostgreSQL's own programs: where they are, and how they are run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from console.programs.backup.errors import BackupError
from console.programs.supervisor import postgres
from console.programs.supervisor.errors import StartError

Say = Callable[[str], None]

LINES_KEPT = 8
SAY_EVERY_S = 2.0
STOP_S = 10.0

# What libpq reads of a connection string, in the environment: a password on a command line is there
# for every user of the machine to read.
_VARIABLES = {
    "host": "PGHOST",
    "hostaddr": "PGHOSTADDR",
    "port": "PGPORT",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "passfile": "PGPASSFILE",
    "service": "PGSERVICE",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}


@dataclass(frozen=True, slots=True)
class Program:
    """One of PostgreSQL's programs, with the release that it is of."""

    path: Path
    major: int


def find_program(name: str, *, at_least: int) -> Program:
    """The embedded server's program, or the one on the PATH, where it is not too old.

    Raises `BackupError`, which names what to install.
    """
    for path in _candidates(name):
        major = _major(path)
        if major is not None and major >= at_least:
            return Program(path, major)
    raise BackupError(
        f"There is no {name} of PostgreSQL {at_least} or later: run `make setup`, or install the"
        f" package postgresql-client-{at_least} (as Debian and Ubuntu name it) so that {name} is on"
        " the PATH."
    )


def run_program(command: Sequence[str | Path], *, dsn: str, on_line: Callable[[str], None]) -> None:
    """Runs one with `--verbose` to its end; whatever interrupts this ends it too.

    Raises `BackupError` with its last lines.
    """
    lines: deque[str] = deque(maxlen=LINES_KEPT)
    process = subprocess.Popen(
        [str(word) for word in command],
        env=environment(dsn, os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stderr is not None  # noqa: S101 (it was asked for above)
    try:
        with process.stderr:
            for line in process.stderr:
                lines.append(line.rstrip())
                on_line(line)
        code = process.wait()
    except BaseException:
        end(process)
        raise
    if code != 0:
        raise BackupError(f"{Path(command[0]).name} failed. It said:", lines)


def end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Asks a process to end, and kills it after a while."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment(dsn: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What a program of PostgreSQL is started with to reach a server, and nothing of others."""
    given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    ours = {variable: given[name] for name, variable in _VARIABLES.items() if given.get(name)}
    kept = {name: value for name, value in environ.items() if not name.startswith("PG")}
    return {**kept, **ours, "LC_ALL": "C.UTF-8"}


class Tables:
    """Says how far a program is, every few seconds, from the tables that its lines name."""

    def __init__(self, say: Say, what: str, pattern: str, total: int) -> None:
        self._say = say
        self._what = what
        self._pattern = re.compile(pattern)
        self._total = total
        self._count = 0
        self._said_at = time.monotonic()

    def __call__(self, line: str) -> None:
        """Counts the line where it begins a table."""
        if not self._pattern.search(line):
            return
        self._count += 1
        now = time.monotonic()
        if now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            self._say(f"{self._what}: table {self._count} of {self._total}")


def _candidates(name: str) -> list[Path]:
    found = []
    with contextlib.suppress(StartError):  # the wheel may not be installed
        found.append(postgres.binaries() / name)
    on_path = shutil.which(name)
    if on_path is not None:
        found.append(Path(on_path))
    return found


def _major(path: Path) -> int | None:
    """The release of a program; none where it does not run here."""
    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=STOP_S
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+)", said)
    return int(version.group(1)) if version else None
