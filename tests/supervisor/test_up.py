"""The real service as a whole: it is started, stopped, killed and started again.

Most tests use the service that all tests of a session share, and leave it up. Tests of a first
start have a home and ports of their own. That nothing is lost after kill −9 of everything is a
scenario of `tests/service`.
"""

import asyncio
import os
import signal
import socket
import subprocess

import httpx
import psycopg
import pytest

from console.programs.supervisor.errors import StartError
from console.programs.supervisor.ports import Port, check_clusters_ports
from console.programs.supervisor.postgres import connection_string
from console.programs.supervisor.processes import is_running
from tests.service.running import everybody_is_gone, up_again

from .run import Run, wait_until

PARTS = {
    *("postgres", "redis", "keeper", "gateway", "agent", "web", "worker", "nightly", "outbound"),
    "beat",
}


@pytest.fixture
def up(service):
    """The service that all tests share. A test may stop and kill it; afterwards it is up again."""
    with up_again(service):
        yield service


@pytest.fixture
def first(folder):
    """A run on a new home; what still runs of it at the end is killed."""
    run = Run(folder / "home")
    yield run
    if run.started:
        run.kill_everything()


def is_ready(run):
    return httpx.get(f"{run.address}/readyz", timeout=30).status_code == 200


def answers(run):
    try:
        return is_ready(run)
    except httpx.TransportError:
        return False


def test_stop_and_up_again(up):
    children = up.children()
    assert set(children) >= PARTS
    assert all(is_running(children[name]) for name in PARTS)
    everybody_is_gone(up)
    assert not (up.home / "run.json").exists()

    up.up()
    assert is_ready(up)
    assert not any(line.startswith("migrate") for line in up.lines)
    up.wait_for_line("Ctrl-C stops all of it")
    banner = "\n".join(up.lines[up.lines.index("Freshet is up.") :])
    for part in (str(up.http), str(up.kafka), str(up.home), up.mail_page):
        assert part in banner


def test_a_second_up_says_where_the_first_is(up):
    second = Run(up.home)
    second.start()
    assert second.wait() == 1
    assert f"already runs on {up.home}" in second.lines[-1]
    assert str(up.http) in second.lines[-1]
    assert is_ready(up)


def test_a_busy_port_is_named_before_anything_starts(first):
    with socket.create_server(("127.0.0.1", first.http)):
        first.start()
        assert first.wait() == 1
    assert f"Port {first.http} (the console and REST) is taken" in first.lines[-1]
    assert "FRESHET_HTTP_PORT" in first.lines[-1]
    assert not (first.home / "postgres").exists()


def test_a_listener_on_a_clusters_port_is_named(service):
    dsn = connection_string(service.home / "postgres", "freshet_owner", "freshet")
    ports = [Port(60_001, "Kafka over TLS", "FRESHET_TLS_PORT"), Port(60_002, "REST", "OTHER")]
    asyncio.run(check_clusters_ports(dsn, ports))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("INSERT INTO provisioning_cell VALUES ('c', 'local', now())")
        connection.execute(
            "INSERT INTO provisioning_cellport (cell_id, port, cluster_id, slot)"
            " VALUES ('c', 60001, 'cl_1', 0)"
        )
        try:
            with pytest.raises(StartError) as caught:
                asyncio.run(check_clusters_ports(dsn, ports))
        finally:
            connection.execute("DELETE FROM provisioning_cellport WHERE cell_id = 'c'")
            connection.execute("DELETE FROM provisioning_cell WHERE id = 'c'")
    assert caught.value.sentence == (
        "Port 60001 (Kafka over TLS) is the cluster cl_1's: set FRESHET_TLS_PORT to another, or"
        " delete the cluster."
    )


@pytest.mark.full
def test_after_kill_9_of_the_supervisor_its_children_are_ended(up):
    left = up.children()
    up.kill_supervisor()
    assert is_running(left["postgres"])
    up.up()
    assert any("The last run was killed; ended" in line for line in up.lines)
    assert not any(is_running(child) for child in left.values())
    assert is_ready(up)


@pytest.mark.full
def test_a_killed_child_is_started_again(up):
    first = up.children()
    killed = ("web", "postgres", "keeper", "gateway", "agent")
    for part in killed:
        os.kill(first[part].pid, signal.SIGKILL)

    def are_running_again():
        now = up.children()
        return all(now[part] != first[part] and is_running(now[part]) for part in killed)

    wait_until(are_running_again, "the killed children run again")
    wait_until(lambda: answers(up), "the service answers")


@pytest.mark.full
def test_a_second_interrupt_kills_all(up):
    children = up.children()
    up.process.send_signal(signal.SIGINT)
    up.wait_for_line("Stopping")
    up.process.send_signal(signal.SIGINT)
    assert up.wait() == 130
    wait_until(lambda: not any(is_running(c) for c in children.values()), "all are gone")


@pytest.mark.full
@pytest.mark.parametrize("moment", ["Starting for the first time", r"^migrate +\| +Applying "])
def test_a_first_start_that_was_killed_half_way_is_completed(first, moment):
    first.start()
    first.wait_for_line(moment)
    first.kill_everything()
    first.up()
    assert is_ready(first)
    assert first.stop(signal.SIGINT) == 0


@pytest.mark.full
def test_a_stop_while_starting_stops_all(first):
    first.start()
    first.wait_for_line("Starting for the first time")
    assert first.stop() == 0
    assert first.family() == []


@pytest.mark.full
def test_a_full_disk_is_one_sentence_and_room_completes_the_start(first):
    """Under root the home is a small file system; otherwise the size of files is limited."""
    if os.geteuid() == 0:
        first.home.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(first.home)]
        subprocess.run(mount, check=True)
        try:
            first.start()
            assert first.wait() == 1
        finally:
            subprocess.run(["umount", str(first.home)], check=True)
        assert f"The disk that holds {first.home} has" in first.lines[-1]
    else:
        first.start(wrapper=("bash", "-c", 'ulimit -f 64; exec "$@"', "bash"))
        assert first.wait() == 1
        assert any("Freshet did not start" in line for line in first.lines)
    first.up()
    assert is_ready(first)
    assert first.stop() == 0
