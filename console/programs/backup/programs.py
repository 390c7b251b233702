"""Finds and runs PostgreSQL's own programs, pg_dump and pg_restore."""

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

# The variables of libpq for the parts of a connection string. The parts are given in the
# environment, since every user of the machine can read a password on a command line.
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
class PostgresProgram:
    """One of PostgreSQL's programs with its major version."""

    path: Path
    major: int


def find_program(name: str, *, at_least: int) -> PostgresProgram:
    """Returns the program of the embedded server, or the one on the PATH.

    `at_least`: the lowest major version. Raises `BackupError`, which names what to install.
    """
    for path in _candidate_paths(name):
        major = _release_of(path)
        if major is not None and major >= at_least:
            return PostgresProgram(path, major)
    raise BackupError(
        f"There is no {name} of PostgreSQL {at_least} or later: run `make setup`, or install the"
        f" package postgresql-client-{at_least} (as Debian and Ubuntu name it) so that {name} is on"
        " the PATH."
    )


def run_program(command: Sequence[str | Path], *, dsn: str, on_line: Callable[[str], None]) -> None:
    """Runs a program to its end and calls `on_line` with each line of its standard error.

    Where this is interrupted, the program is ended too. Raises `BackupError` with its last lines
    where it fails.
    """
    lines: deque[str] = deque(maxlen=LINES_KEPT)
    process = subprocess.Popen(
        [str(word) for word in command],
        env=environment_for(dsn, os.environ),
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
        end_process(process)
        raise
    if code != 0:
        raise BackupError(f"{Path(command[0]).name} failed. Its last lines:", lines)


def end_process(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """Asks a process to end, and kills it where it still runs after `STOP_S`."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def environment_for(dsn: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment of a program of PostgreSQL that shall reach the server `dsn`.

    Variables of libpq in `environ` are left out, so that they cannot lead it to another server.
    """
    given = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    ours = {variable: given[name] for name, variable in _VARIABLES.items() if given.get(name)}
    kept = {name: value for name, value in environ.items() if not name.startswith("PG")}
    return {**kept, **ours, "LC_ALL": "C.UTF-8"}


class Tables:
    """Reports how many tables a program has begun, every few seconds, from its lines."""

    def __init__(self, say: Say, what: str, pattern: str, total: int) -> None:
        self._say = say
        self._what = what
        self._pattern = re.compile(pattern)
        self._total = total
        self._count = 0
        self._said_at = time.monotonic()

    def __call__(self, line: str) -> None:
        """Counts a line that names the next table."""
        if not self._pattern.search(line):
            return
        self._count += 1
        now = time.monotonic()
        if now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            self._say(f"{self._what}: table {self._count} of {self._total}")


def _candidate_paths(name: str) -> list[Path]:
    candidates = []
    with contextlib.suppress(StartError):  # the wheel may not be installed
        candidates.append(postgres.programs_folder() / name)
    on_path = shutil.which(name)
    if on_path is not None:
        candidates.append(Path(on_path))
    return candidates


def _release_of(path: Path) -> int | None:
    """Returns the major version of a program; None where it does not run here."""
    try:
        printed = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=True, timeout=STOP_S
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+)", printed)
    return int(version.group(1)) if version else None
