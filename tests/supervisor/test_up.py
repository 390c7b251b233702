"""Everything together: the real service on a home and ports of its own."""

import os
import signal
import socket
import subprocess

import httpx
import pytest

from console.programs.supervisor.processes import is_running

from .run import Run, wait_until

PARTS = {"postgres", "redis", "keeper", "gateway", "agent", "web", "worker", "nightly", "beat"}


@pytest.fixture
def run(folder):
    """A run on a home that never was; whatever is left of it at the end is killed."""
    run = Run(folder / "home")
    yield run
    if run.started:
        run.kill_everything()


@pytest.fixture(scope="module")
def kept(folder_for_all):
    """A home that was up once and stopped in order, to begin others from: that is quicker."""
    run = Run(folder_for_all / "home")
    try:
        run.up()
        assert run.stop() == 0
    finally:
        run.kill_everything()
    return run.home


@pytest.fixture
def later(run, kept):
    """A run on a home that was up before."""
    # With owners: as root PostgreSQL has an account of its own.
    subprocess.run(["cp", "--archive", kept, run.home], check=True)
    return run


def healthy(run):
    return httpx.get(f"{run.address}/readyz", timeout=30).status_code == 200


def test_up_stop_and_up_again(run):
    run.up()
    assert healthy(run)
    children = run.children()
    assert set(children) >= PARTS
    assert all(is_running(children[name]) for name in PARTS)
    banner = "\n".join(run.lines)
    for part in (str(run.http), str(run.kafka), str(run.home)):
        assert part in banner

    assert run.stop() == 0
    assert not any(is_running(child) for child in children.values())
    assert not (run.home / "run.json").exists()

    run.up()
    assert healthy(run)
    assert not any(line.startswith("migrate") for line in run.lines)
    assert run.stop(signal.SIGINT) == 0


def test_after_kill_9_of_everything_it_goes_on(later):
    later.up().kill_everything()
    later.up()
    assert healthy(later)
    assert later.stop() == 0


def test_after_kill_9_of_the_supervisor_its_children_are_ended(later):
    later.up()
    left = later.children()
    later.kill_supervisor()
    assert is_running(left["postgres"])
    later.up()
    assert any("The last run was killed; ended" in line for line in later.lines)
    assert not any(is_running(child) for child in left.values())
    assert healthy(later)
    assert later.stop() == 0


def test_a_second_up_says_where_the_first_is(later):
    later.up()
    second = Run(later.home)
    second.start()
    assert second.wait() == 1
    assert f"already runs on {later.home}" in second.lines[-1]
    assert str(later.http) in second.lines[-1]
    assert healthy(later)
    assert later.stop() == 0


def test_a_busy_port_is_named_before_anything_starts(run):
    with socket.create_server(("127.0.0.1", run.http)):
        run.start()
        assert run.wait() == 1
    assert f"Port {run.http} (the console and REST) is taken" in run.lines[-1]
    assert "FRESHET_HTTP_PORT" in run.lines[-1]
    assert not (run.home / "postgres").exists()


def test_a_killed_child_is_back(later):
    later.up()
    first = later.children()
    killed = ("web", "postgres", "keeper", "gateway", "agent")
    for part in killed:
        os.kill(first[part].pid, signal.SIGKILL)

    def back():
        now = later.children()
        return all(now[part] != first[part] and is_running(now[part]) for part in killed)

    wait_until(back, "they are back")
    wait_until(lambda: answers(later), "the service answers")
    assert later.stop() == 0


def answers(run):
    try:
        return healthy(run)
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("moment", ["Starting for the first time", r"^migrate +\| +Applying "])
def test_a_first_start_that_was_killed_half_way_is_completed(run, moment):
    run.start()
    run.wait_for_line(moment)
    run.kill_everything()
    run.up()
    assert healthy(run)
    assert run.stop() == 0


def test_a_stop_while_starting_stops_all(run):
    run.start()
    run.wait_for_line("Starting for the first time")
    assert run.stop() == 0
    assert run.family() == []


def test_a_second_interrupt_kills_all(later):
    later.up()
    children = later.children()
    later.process.send_signal(signal.SIGINT)
    later.wait_for_line("Stopping")
    later.process.send_signal(signal.SIGINT)
    assert later.wait() == 130
    wait_until(lambda: not any(is_running(c) for c in children.values()), "all are gone")


def test_a_full_disk_is_one_sentence_and_room_completes_the_start(run):
    """With root a small file system; without, a limit on what a file may hold."""
    if os.geteuid() == 0:
        run.home.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(run.home)]
        subprocess.run(mount, check=True)
        try:
            run.start()
            assert run.wait() == 1
        finally:
            subprocess.run(["umount", str(run.home)], check=True)
        assert f"The disk that holds {run.home} has" in run.lines[-1]
    else:
        run.start(wrapper=("bash", "-c", 'ulimit -f 64; exec "$@"', "bash"))
        assert run.wait() == 1
        assert any("Freshet did not start" in line for line in run.lines)
    run.up()
    assert healthy(run)
    assert run.stop() == 0
