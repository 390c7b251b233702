"""Tests of one child process."""

import asyncio
import os
import re
import signal
import sys
from io import StringIO
from pathlib import Path

import pytest

from console.programs.supervisor.child import Child, ChildSpec, back_off_s
from console.programs.supervisor.conditions import Says
from console.programs.supervisor.errors import StartError
from console.programs.supervisor.leftovers import Record
from console.programs.supervisor.output import Output
from console.programs.supervisor.processes import identify_process, members_of

WAITING = """
import signal, sys
print('ready', flush=True)
signal.pause()
"""
STUBBORN = """
import signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
while True: signal.pause()
"""
WITH_FAMILY = """
import signal, subprocess, sys
subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])
print('ready', flush=True)
signal.pause()
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "log").mkdir()
    return tmp_path


@pytest.fixture
def make_child(home):
    """Returns a function that makes a child of a Python program; it returns the child and its
    output.
    """
    stream = StringIO()
    outputs = []

    def make(program, **options):
        spec = ChildSpec(
            name="child",
            command=(sys.executable, "-u", "-c", program),
            ready=Says(re.compile("ready")),
            folder=home,
            environment={"FRESHET_RUN": "mark"},
            **{"start_timeout_s": 60.0, **options},
        )
        output = Output(stream, home / "log", ["freshet", "child"], colour=False)
        outputs.append(output)
        return Child(spec, output, Record(home / "run.json", "mark"), home), stream

    yield make
    for output in outputs:
        output.close()


async def wait_until(holds):
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.02)


def session_niceness(pid):
    """The niceness of a process's session; None where the kernel schedules without sessions."""
    try:
        words = Path(f"/proc/{pid}/autogroup").read_text().split()
    except FileNotFoundError:
        return None
    return int(words[-1]) if words else None


def expected_session_niceness(pid, niceness):
    """What a child's session has, where it has any and this machine lets it be changed."""
    if session_niceness(pid) is None:
        return None
    return niceness if os.access(f"/proc/{pid}/autogroup", os.W_OK) else 0


def test_a_child_that_gives_way_does_so_against_other_sessions_too(make_child):
    """Each child has a session, and niceness alone counts within one."""
    child, _ = make_child(WAITING, niceness=5)
    other, _ = make_child(WAITING)

    async def run():
        await asyncio.gather(child.start(), other.start())
        try:
            own = os.getpriority(os.PRIO_PROCESS, 0)
            assert os.getpriority(os.PRIO_PROCESS, child.pid) == min(19, own + 5)
            expected = expected_session_niceness(child.pid, 5)
            await wait_until(lambda: session_niceness(child.pid) == expected)
            assert session_niceness(other.pid) in {None, 0}
        finally:
            await asyncio.gather(child.stop(), other.stop())

    asyncio.run(run())


def test_a_child_starts_speaks_and_stops(make_child, home):
    child, stream = make_child(WAITING)

    async def run():
        await child.start()
        pid = child.pid
        await child.stop()
        return pid

    pid = asyncio.run(run())
    assert identify_process(pid) is None
    assert "child   | ready\n" in stream.getvalue()
    assert (home / "log" / "child.log").read_text() == "ready\n"


def test_a_child_that_dies_is_started_again(make_child):
    child, stream = make_child(WAITING)

    async def run():
        await child.start()
        first = child.pid
        child._send_signal(signal.SIGKILL)
        await wait_until(lambda: child.pid not in {None, first})
        await child.stop()

    asyncio.run(run())
    assert "child ended unexpectedly (SIGKILL); starting it again in 0.25 s" in stream.getvalue()


def test_a_child_that_never_comes_up_is_named_with_its_last_lines(make_child):
    child, _ = make_child("import sys; sys.exit('the reason why')")
    with pytest.raises(StartError) as caught:
        asyncio.run(child.start())
    assert "child did not start (exit 1)" in caught.value.sentence
    assert "the reason why" in caught.value.lines


def test_a_condition_that_never_holds_is_named(make_child):
    child, _ = make_child("import signal; print('still busy'); signal.pause()", start_timeout_s=0.5)

    async def run():
        try:
            with pytest.raises(StartError) as caught:
                await child.start()
        finally:
            await child.stop()
        return caught.value

    error = asyncio.run(run())
    assert "child did not say that it is ready within" in error.sentence


def test_a_full_disk_is_recognised_from_the_childs_last_lines(make_child, home):
    child, _ = make_child("import sys; sys.exit('could not write: No space left on device')")
    with pytest.raises(StartError) as caught:
        asyncio.run(child.start())
    assert caught.value.sentence.startswith(f"The disk that holds {home} is full")


def test_a_program_that_is_not_there_is_named(make_child, home):
    child, _ = make_child("")
    spec = ChildSpec("child", (str(home / "absent"),), child.spec.ready, home)
    absent = Child(spec, child._output, child._record, home)
    with pytest.raises(StartError, match="No such file"):
        asyncio.run(absent.start())


def test_a_child_that_will_not_stop_is_killed(make_child):
    child, stream = make_child(STUBBORN, stop_timeout_s=0.2)

    async def run():
        await child.start()
        pid = child.pid
        await child.stop()
        return pid

    assert identify_process(asyncio.run(run())) is None
    assert "did not stop within" in stream.getvalue()


def test_processes_that_a_child_started_end_with_it(make_child):
    child, _ = make_child(WITH_FAMILY)

    async def run():
        await child.start()
        first = child.pid
        assert len(members_of(first, "FRESHET_RUN=mark")) == 2
        child._send_signal(signal.SIGKILL)
        await wait_until(lambda: child.pid not in {None, first})
        assert members_of(first, "FRESHET_RUN=mark") == []
        await child.stop()

    asyncio.run(run())


def test_a_line_without_end_does_not_stop_the_reading(make_child):
    child, stream = make_child(
        "print('x' * 1_000_000); print('ready'); import signal; signal.pause()"
    )

    async def run():
        await child.start()
        await child.stop()

    asyncio.run(run())
    assert "child   | ready\n" in stream.getvalue()


def test_routine_lines_are_only_in_the_log(make_child, home):
    program = "print('LOG: dull'); print('ready'); import signal; signal.pause()"
    child, stream = make_child(program, routine=re.compile("^LOG"))

    async def run():
        await child.start()
        await child.stop()

    asyncio.run(run())
    assert "dull" not in stream.getvalue()
    assert "LOG: dull" in (home / "log" / "child.log").read_text()


def test_back_off_doubles_up_to_half_a_minute():
    assert [back_off_s(n) for n in (1, 2, 3, 4)] == [0.25, 0.5, 1, 2]
    assert back_off_s(50) == 30
