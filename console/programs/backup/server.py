"""The way to the PostgreSQL server: the embedded one, started if it does not run, or another."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from console.programs.backup.errors import BackupError
from console.programs.backup.programs import Say
from console.programs.supervisor import postgres, services
from console.settings.config import Config

START_S = 120.0
STOP_S = 60.0
POLL_S = 0.05
VARIABLE = "FRESHET_SUPERUSER_DSN"


def server_superuser(config: Config, given: str | None) -> str | None:
    """The superuser's connection string for a server of one's own; none for the embedded one.

    Row security binds the tables' owner too, so only a superuser reads all rows.
    Raises `BackupError` where nobody said who that is.
    """
    if services.embeds_postgres(config):
        return None
    if not given:
        raise BackupError(
            "The database is on a server of yours: say who may read all of it, by --superuser or"
            f" {VARIABLE} in the environment (`host=... user=postgres dbname=postgres`)."
        )
    return given


def embedded_superuser(config: Config) -> str:
    """The superuser of the embedded server."""
    data = services.postgres_folder(config)
    return postgres.dsn(data, postgres.SUPERUSER, postgres.SUPERUSER)


def wait_for(dsn: str, *, limit_s: float, process: subprocess.Popen[bytes] | None = None) -> None:
    """Waits until the server takes connections. Raises `BackupError`."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            gone = process is not None and process.poll() is not None
            if gone or time.monotonic() > deadline:
                raise BackupError(f"PostgreSQL does not answer: {str(error).strip()}") from error
            time.sleep(POLL_S)
        else:
            return


@contextmanager
def embedded_server(config: Config, say: Say) -> Iterator[str]:
    """Runs the embedded server for as long as this is open; gives its superuser.

    The caller holds the home's lock and has ended what an earlier run left. A data folder is made
    where there is none.
    """
    data = services.postgres_folder(config)
    account = postgres.account_for_root()
    asyncio.run(postgres.prepare(config.home, data, account, _ignore))
    say("Starting the embedded PostgreSQL.")
    log = config.home / "log" / "postgres.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            postgres.command(data),
            cwd=data,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for us; the server ends when we are done with it.
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    try:
        dsn = embedded_superuser(config)
        try:
            wait_for(dsn, limit_s=START_S, process=process)
        except BackupError as error:
            raise BackupError(
                f"{error.sentence} Its log is {log}. Where its data folder {data} is damaged, move"
                " it aside: a new one is made.",
            ) from error
        yield dsn
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends it with a checkpoint; what does not end is killed, and recovers at its next start."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ignore(pid: int) -> None:
    """Nobody else needs to know of `initdb`."""
    del pid
