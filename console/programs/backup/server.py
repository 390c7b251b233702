"""Reaches the PostgreSQL server: the embedded one, which is started for it, or another one."""

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
    """Returns the superuser's connection string for a server of one's own; None for the embedded
    one.

    Only a superuser reads all rows, as row security binds the owner of the tables too. `given`: the
    option or the variable. Raises `BackupError` where it is missing and needed.
    """
    if services.embeds_postgres(config):
        return None
    if not given:
        raise BackupError(
            "The database is on a server of yours: name its superuser, who may read all of it, by"
            f" --superuser or {VARIABLE} in the environment (`host=... user=postgres"
            " dbname=postgres`)."
        )
    return given


def embedded_superuser(config: Config) -> str:
    """Returns the connection string of the embedded server's superuser."""
    data = services.postgres_folder(config)
    return postgres.connection_string(data, postgres.SUPERUSER, postgres.SUPERUSER)


def wait_for_server(
    dsn: str, *, limit_s: float, process: subprocess.Popen[bytes] | None = None
) -> None:
    """Waits until the server accepts connections.

    Raises `BackupError` after `limit_s`, or as soon as `process` (the server) has ended.
    """
    deadline = time.monotonic() + limit_s
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            ended = process is not None and process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise BackupError(f"PostgreSQL does not answer: {str(error).strip()}") from error
            time.sleep(POLL_S)
        else:
            return


@contextmanager
def embedded_server(config: Config, say: Say) -> Iterator[str]:
    """Runs the embedded server while this is open; yields its superuser's connection string.

    The caller holds the home's lock and has ended what an earlier run left. The data folder is made
    where there is none. Raises `BackupError` where the server does not start.
    """
    data = services.postgres_folder(config)
    account = postgres.account_for_root()
    asyncio.run(postgres.prepare_data(config.home, data, account, _ignore_pid))
    say("Starting the embedded PostgreSQL.")
    log = config.home / "log" / "postgres.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            postgres.server_command(data),
            cwd=data,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches this program only, which then stops the server in order.
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
    try:
        dsn = embedded_superuser(config)
        try:
            wait_for_server(dsn, limit_s=START_S, process=process)
        except BackupError as error:
            raise BackupError(
                f"{error.sentence} Its log is {log}. Where its data folder {data} is damaged, move"
                " it aside: a new one is made.",
            ) from error
        yield dsn
    finally:
        _stop_server(process)


def _stop_server(process: subprocess.Popen[bytes]) -> None:
    """Stops the server with a checkpoint; kills it after `STOP_S`, whereupon its next start
    recovers.
    """
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _ignore_pid(pid: int) -> None:
    """Ignores the process id of `initdb`: a backup keeps no record of children."""
