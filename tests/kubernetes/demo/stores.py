"""Runs PostgreSQL, Redis, etcd and an S3 server on this machine, where pods reach them."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import boto3
from psycopg import OperationalError, connect
from psycopg.conninfo import make_conninfo

from console.base.common.roles import prepare_database
from console.programs.supervisor import postgres, redis
from console.settings.sections import Database
from tests.kubernetes.installation import ROOT
from tests.peer.processes import bound_command, stop_servers

TOOLS = ROOT / ".tools" / "bin"
POSTGRES, REDIS, ETCD, S3 = 5432, 6379, 2379, 9000
BUCKETS = ("demo", "usage", "documents")
REGION = "us-east-1"
ACCESS_KEY, SECRET_KEY = "demo", "demonstration"
# The password of the two roles, as in the overlay's Secrets.
PASSWORD = "demo"
# A time limit that is reached only where something is wrong.
START_S = 120.0
LOOK_S = 0.1


class Stores:
    """The four servers at one address, within a `with` block. Their data is in a folder."""

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._address = address
        self._servers: list[subprocess.Popen[bytes]] = []
        self._stack = ExitStack()
        self._superuser = make_conninfo(
            host=address, user=postgres.SUPERUSER, dbname=postgres.SUPERUSER
        )

    def __enter__(self) -> Self:
        """Starts them. Returns once they serve and hold what the service expects."""
        with self._stack as stack:
            stack.callback(lambda: stop_servers(self._servers))
            self._start_postgres()
            self._start_others()
            for port in (POSTGRES, REDIS, ETCD, S3):
                self._until_served(port)
            self._prepare()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stops them."""
        self._stack.close()

    def _start_postgres(self) -> None:
        data = self._folder / "postgres"
        account = postgres.account_for_root()
        asyncio.run(postgres.prepare_data(self._folder, data, account, lambda _pid: None))
        with (data / "pg_hba.conf").open("a", encoding="utf-8") as file:
            # Only pods of this machine can reach the address.
            file.write("host all all samenet trust\nhost all all 10.0.0.0/8 trust\n")
        command = [*postgres.server_command(data), f"-clisten_addresses={self._address}"]
        self._run("postgres", command, user=account.uid if account else None, folder=data)

    def _start_others(self) -> None:
        for name in ("redis", "etcd", "s3"):
            (self._folder / name).mkdir()
        listening = ["--port", str(REDIS), "--bind", self._address, "--protected-mode", "no"]
        self._run("redis", [*redis.server_command(self._folder / "redis"), *listening])
        client = f"http://{self._address}:{ETCD}"
        flags = [f"--listen-client-urls={client}", f"--advertise-client-urls={client}"]
        flags += [f"--data-dir={self._folder / 'etcd' / 'data'}", "--log-level=error"]
        self._run("etcd", [str(TOOLS / "etcd"), *flags])
        keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        listening = [f"-listen={self._address}:{S3}", f"-data={self._folder / 's3'}"]
        self._run("s3", [str(TOOLS / "s3"), *listening], environment=keys)

    def _prepare(self) -> None:
        database = Database(host=self._address, owner_password=PASSWORD, app_password=PASSWORD)
        prepare_database(superuser=self._superuser, database=database)
        client = boto3.client(
            "s3",
            endpoint_url=f"http://{self._address}:{S3}",
            region_name=REGION,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
        )
        for name in BUCKETS:
            client.create_bucket(Bucket=name)
        client.close()

    def _run(
        self,
        name: str,
        command: Sequence[str],
        *,
        user: int | None = None,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            # A session of its own: a Ctrl-C is meant for the demonstration, which ends them in
            # order.
            process = subprocess.Popen(
                bound_command(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder or self._folder,
                env={**os.environ, **(environment or {})},
                user=user,
                start_new_session=True,
            )
        self._servers.append(process)

    def _until_served(self, port: int) -> None:
        deadline, pause = time.monotonic() + START_S, threading.Event()
        while True:
            try:
                self._look(port)
            except (OSError, OperationalError):
                assert time.monotonic() < deadline, f"nobody serves port {port}: {self._folder}"
                pause.wait(LOOK_S)
            else:
                return

    def _look(self, port: int) -> None:
        if port == POSTGRES:
            # PostgreSQL listens before it answers.
            connect(self._superuser).close()
        else:
            socket.create_connection((self._address, port), timeout=1).close()
