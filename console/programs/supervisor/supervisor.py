"""Runs Freshet on one machine: check, end leftovers, start, watch, stop.

What a start needs is checked before anything starts. Parts that do not depend on each other start
at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from typing import TextIO

from brokers.settings.errors import SettingsError
from console.base.common.roles import prepare_database
from console.programs.supervisor import home, migrations, postgres, services
from console.programs.supervisor.banner import banner
from console.programs.supervisor.child import Account, Child
from console.programs.supervisor.errors import (
    StartError,
    disk_full_sentence,
    from_os_error,
    names_full_disk,
)
from console.programs.supervisor.leftovers import Record, end_leftovers
from console.programs.supervisor.lock import HomeLock
from console.programs.supervisor.marker import refuse_half_restored
from console.programs.supervisor.output import Output
from console.programs.supervisor.ports import check_clusters_ports, check_ports
from console.programs.supervisor.space import check_space
from console.settings.config import Config, load_config

EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_KILLED = 130

SELF = "freshet"


class Supervisor:
    """One run of the whole service on one home."""

    def __init__(self, config: Config, environ: Mapping[str, str], output: Output) -> None:
        self._config = config
        self._output = output
        run = secrets.token_hex(8)
        self._record_path = config.home / "run.json"
        self._record = Record(self._record_path, run)
        self._environment = services.child_environment(config, environ, run)
        self._children: dict[str, Child] = {}
        self._migrated = asyncio.Event()
        self._stop = asyncio.Event()

    def request_stop(self) -> None:
        """Stops everything in order; a second request kills everything."""
        if not self._stop.is_set():
            self._stop.set()
            return
        self._say("Killing everything.")
        for child in self._children.values():
            child.kill()
        # Nothing is waited for: the next start ends what is left.
        self._output.close()
        os._exit(EXIT_KILLED)

    async def run(self) -> None:
        """Runs the service until it is asked to stop.

        Raises `StartError` where it could not start.
        """
        with HomeLock(self._config.home / "up.lock", self._config.web.public_url):
            refuse_half_restored(self._config.home)
            left = await end_leftovers(self._record_path)
            if left:
                self._say(f"The last run was killed; ended what it left: {', '.join(left)}.")
            check_ports(home.listening_ports(self._config))
            first = not services.postgres_folder(self._config).exists()
            check_space(self._config.home, first=first)
            home.make_folders(self._config)
            home.make_secrets(self._config)
            home.write_settings(self._config)
            try:
                await self._start_unless_stopped(first=first)
                await self._stop.wait()
            finally:
                await self._stop_all()

    async def _start_unless_stopped(self, *, first: bool) -> None:
        starting = asyncio.create_task(self._start_all(first=first))
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
        finally:
            for task in (starting, stopping):
                task.cancel()
            await asyncio.gather(starting, stopping, return_exceptions=True)

    async def _start_all(self, *, first: bool) -> None:
        begun = asyncio.get_running_loop().time()
        self._say(
            "Starting for the first time; this takes a little longer." if first else "Starting."
        )
        account = await self._prepare_postgres()
        specs = services.specify_children(self._config, self._environment, account)
        for spec in specs:
            self._children[spec.name] = Child(spec, self._output, self._record, self._config.home)
        tasks = [self._migrate(), *(self._start_child(child) for child in self._children.values())]
        try:
            async with asyncio.TaskGroup() as group:
                for task in tasks:
                    group.create_task(task)
        except ExceptionGroup as failures:
            # The first failure is the cause; the others may have failed because of it.
            raise failures.exceptions[0] from None
        took_s = asyncio.get_running_loop().time() - begun
        self._say(f"All of it is up after {took_s:.1f} s.")
        self._output.show(banner(self._config))

    async def _prepare_postgres(self) -> Account | None:
        if not services.embeds_postgres(self._config):
            return None
        account = postgres.account_for_root()
        data = services.postgres_folder(self._config)
        await postgres.prepare_data(self._config.home, data, account, self._note_initdb)
        return account

    def _note_initdb(self, pid: int) -> None:
        self._record.add("initdb", pid, signal.SIGKILL, members=False)

    async def _start_child(self, child: Child) -> None:
        for name in child.spec.after:
            waited = self._migrated if name == services.MIGRATE else self._children[name].is_up
            await waited.wait()
        await child.start()

    async def _migrate(self) -> None:
        """Makes the roles, the database and the tables that do not exist yet."""
        config = self._config
        dsn = None
        if services.embeds_postgres(config):
            await self._children[services.POSTGRES].is_up.wait()
            data = services.postgres_folder(config)
            superuser = postgres.connection_string(data, postgres.SUPERUSER, postgres.SUPERUSER)
            database = config.database
            await asyncio.to_thread(prepare_database, superuser=superuser, database=database)
            dsn = postgres.connection_string(data, database.owner_user, database.name)
        expected = migrations.migrations_fingerprint(services.ROOT)
        # Another server may be shared with others and has no fingerprint: Django checks it each
        # time.
        if dsn is None or not await migrations.is_migrated(dsn, expected):
            await self._run_migrations()
            if dsn is not None:
                await migrations.mark_migrated(dsn, expected)
        if dsn is not None:
            await check_clusters_ports(dsn, home.own_ports(config))
        self._migrated.set()

    async def _run_migrations(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *services.migrate_command(),
            cwd=services.ROOT,
            env=self._environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self._record.add(services.MIGRATE, process.pid, signal.SIGTERM, members=True)
        assert process.stdout is not None  # noqa: S101 (it was asked for above)
        try:
            async for raw in process.stdout:
                self._output.say(services.MIGRATE, raw.decode(errors="replace").rstrip())
            code = await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()
            raise
        if code != 0:
            lines = self._output.tail(services.MIGRATE)
            if names_full_disk(lines):
                raise StartError(disk_full_sentence(self._config.home), lines)
            raise StartError(
                "The database could not be migrated. The last lines of the migration:", lines
            )

    async def _stop_all(self) -> None:
        if self._children:
            self._say("Stopping.")
        for name in reversed(self._children):
            await self._children[name].stop()
        self._record.clear()

    def _say(self, line: str) -> None:
        self._output.say(SELF, line)


async def _run_supervisor(supervisor: Supervisor) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, supervisor.request_stop)
    await supervisor.run()


def main(environ: Mapping[str, str] | None = None, stream: TextIO = sys.stdout) -> int:
    """Runs Freshet on this machine until a signal asks it to stop; returns the exit status."""
    env = os.environ if environ is None else environ
    os.umask(0o077)  # files of the supervisor and its children are for their owner only
    try:
        config = load_config(env)
    except SettingsError as error:
        sys.stderr.write(f"Freshet cannot start: {error}\n")
        return EXIT_FAILED
    try:
        home.make_home(config)
    except OSError as error:
        sys.stderr.write(f"Freshet cannot start: {from_os_error(error, config.home).sentence}\n")
        return EXIT_FAILED
    colour = stream.isatty() and "NO_COLOR" not in env
    names = (SELF, *services.NAMES)
    output = Output(stream, config.home / "log", names, colour=colour)
    try:
        asyncio.run(_run_supervisor(Supervisor(config, env, output)))
    except StartError as error:
        _report_failure(output, error)
        return EXIT_FAILED
    except OSError as error:
        _report_failure(output, from_os_error(error, config.home))
        return EXIT_FAILED
    finally:
        output.close()
    return EXIT_STOPPED


def _report_failure(output: Output, error: StartError) -> None:
    output.say(SELF, f"Freshet did not start. {error.sentence}")
    for line in error.lines:
        output.say(SELF, f"    {line}")
