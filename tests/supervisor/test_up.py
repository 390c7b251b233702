"""Everything together: the real service on a home and ports of its own."""

import os
import signal
import socket
import subprocess

import httpx
import pytest

from console.supervisor.processes import is_running

from .run import Run, wait_until

PARTS = {"postgres", "redis", "keeper", "gateway", "web", "worker", "beat"}


@pytest.fixture
def run(tmp_path):
    """A run that may be started; whatever is left of it at the end is killed."""
    run = Run(tmp_path / "home")
    yield run
    if run.started:
        run.kill_everything()


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


def test_after_kill_9_of_everything_it_goes_on(run):
    run.up().kill_everything()
    run.up()
    assert healthy(run)
    assert run.stop() == 0


def test_after_kill_9_of_the_supervisor_its_children_are_ended(run):
    run.up()
    left = run.children()
    run.process.kill()
    run.process.wait()
    assert is_running(left["postgres"])
    run.up()
    assert any("The last run was killed; ended" in line for line in run.lines)
    assert not any(is_running(child) for child in left.values())
    assert healthy(run)
    assert run.stop() == 0


def test_a_second_up_says_where_the_first_is(run):
    run.up()
    second = Run(run.home)
    second.start()
    assert second.wait() == 1
    assert f"already runs on {run.home}" in second.lines[-1]
    assert str(run.http) in second.lines[-1]
    assert healthy(run)
    assert run.stop() == 0


def test_a_busy_port_is_named_before_anything_starts(run):
    with socket.create_server(("127.0.0.1", run.http)):
        run.start()
        assert run.wait() == 1
    assert f"Port {run.http} (the console and REST) is taken" in run.lines[-1]
    assert "FRESHET_HTTP_PORT" in run.lines[-1]
    assert not (run.home / "postgres").exists()


@pytest.mark.parametrize("part", ["web", "postgres", "gateway"])
def test_a_killed_child_is_back(run, part):
    run.up()
    first = run.children()[part]
    os.kill(first.pid, signal.SIGKILL)

    def back():
        now = run.children()[part]
        return now != first and is_running(now)

    wait_until(back, f"{part} is back")
    wait_until(lambda: answers(run), "the service answers")
    assert run.stop() == 0


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


def test_a_second_interrupt_kills_all(run):
    run.up()
    children = run.children()
    run.process.send_signal(signal.SIGINT)
    run.wait_for_line("Stopping")
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130
    wait_until(lambda: not any(is_running(c) for c in children.values()), "all are gone")


def test_a_full_disk_is_one_sentence_and_room_completes_the_start(run, tmp_path):
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
