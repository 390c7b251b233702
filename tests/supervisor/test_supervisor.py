"""The order of a run, with small programs in place of the service's parts."""

import asyncio
import io
import re
import sys

import pytest

from console.programs.supervisor import home, services
from console.programs.supervisor.child import ChildSpec
from console.programs.supervisor.conditions import Says
from console.programs.supervisor.errors import StartError
from console.programs.supervisor.output import Output
from console.programs.supervisor.processes import identify_process
from console.programs.supervisor.supervisor import Supervisor
from console.settings.config import build_config

PART = """
import signal, sys
def end(*_):
    print('bye', flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
print('ready', flush=True)
while True: signal.pause()
"""
BROKEN = "import sys; sys.exit('out of order')"


@pytest.fixture
def config(tmp_path):
    """Settings whose database and queue are elsewhere, so that no real server is started."""
    table = {
        "web": {"port": 0},
        "database": {"host": "db.internal"},
        "queue": {"url": "amqp://queue.internal"},
        "gateway": {"tls_port": 0, "kafka_port": 50000, "kafka_ports": 1},
    }
    config = build_config(tmp_path, table, {})
    home.make_home(config)
    return config


@pytest.fixture
def make_supervisor(config, monkeypatch):
    """Returns a function that makes a supervisor of parts, each `(name, program, after)`."""

    def make(*parts):
        specs = [
            ChildSpec(
                name=name,
                command=(sys.executable, "-u", "-c", program),
                ready=Says(re.compile("ready")),
                folder=config.home,
                after=after,
            )
            for name, program, after in parts
        ]
        monkeypatch.setattr(services, "specify_children", lambda *_: specs)
        monkeypatch.setattr(services, "migrate_command", lambda: (sys.executable, "-c", ""))
        stream = io.StringIO()
        output = Output(stream, config.home / "log", ["freshet"], colour=False)
        return Supervisor(config, {}, output), stream, output

    return make


async def until_up(supervisor, stream):
    """Runs the supervisor until all is up; returns the task in which it goes on."""
    running = asyncio.create_task(supervisor.run())
    async with asyncio.timeout(60):
        while "Freshet is up" not in stream.getvalue() and not running.done():
            await asyncio.sleep(0.02)
    return running


def test_parts_stop_in_reverse_order(make_supervisor):
    supervisor, stream, output = make_supervisor(
        ("store", PART, ()), ("web", PART, ("migrate",)), ("beat", PART, ("web", "store"))
    )

    async def run():
        running = await until_up(supervisor, stream)
        supervisor.request_stop()
        await running

    asyncio.run(run())
    output.close()
    printed = stream.getvalue()
    assert printed.index("web") < printed.index("beat    | ready")
    order = [line.split()[0] for line in printed.splitlines() if line.endswith("| bye")]
    assert order == ["beat", "web", "store"]


def test_a_part_that_does_not_start_ends_the_start_and_stops_the_others(make_supervisor, config):
    supervisor, _, output = make_supervisor(("store", PART, ()), ("web", BROKEN, ()))

    async def run():
        with pytest.raises(StartError) as caught:
            await supervisor.run()
        return caught.value

    error = asyncio.run(run())
    output.close()
    assert "web did not start (exit 1)" in error.sentence
    assert "out of order" in error.lines
    assert supervisor._children["store"].pid is None
    assert not (config.home / "run.json").exists()


def test_a_stop_while_parts_wait_for_each_other_ends_it(make_supervisor):
    never = "print('busy', flush=True); import signal; signal.pause()"
    supervisor, stream, output = make_supervisor(("store", never, ()), ("web", PART, ("store",)))

    async def run():
        running = asyncio.create_task(supervisor.run())
        async with asyncio.timeout(60):
            while "busy" not in stream.getvalue():
                await asyncio.sleep(0.02)
        pid = supervisor._children["store"].pid
        supervisor.request_stop()
        await running
        return pid

    assert identify_process(asyncio.run(run())) is None
    output.close()
    assert "Freshet is up" not in stream.getvalue()


def test_migrations_that_fail_end_the_start(make_supervisor, monkeypatch):
    supervisor, _, output = make_supervisor(("web", PART, ("migrate",)))
    command = (sys.executable, "-c", "import sys; sys.exit('no such column')")
    monkeypatch.setattr(services, "migrate_command", lambda: command)

    async def run():
        with pytest.raises(StartError) as caught:
            await supervisor.run()
        return caught.value

    error = asyncio.run(run())
    output.close()
    assert "The database could not be migrated" in error.sentence
    assert "no such column" in error.lines
