"""`console.base.runtime`: from command line to exit status, pages, health, clocks, metrics."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from console.base.runtime.clock import SteadyClock, WallClock
from console.base.runtime.health import Health
from console.base.runtime.metrics import ProcessMetrics
from console.base.runtime.pages import Pages

ROOT = Path(__file__).parents[2]
# A program whose settings file has one word, which says how it behaves.
PROGRAM = """
import logging, sys
from pathlib import Path
from brokers.errors import ConfigError
from brokers.settings.errors import SettingsError
from console.base.runtime.program import EXIT_STOPPED, Program, main, say_ready

FAILURES = {"settings": SettingsError, "broker": ConfigError, "os": OSError, "bug": KeyError}

def load(path, overrides):
    word = overrides[0] if overrides else Path(path).read_text()
    if word.startswith("load-"):
        raise FAILURES[word.removeprefix("load-")]("cannot load")
    return word

async def run(word, stop):
    if word in FAILURES:
        raise FAILURES[word]("cannot run")
    logging.getLogger("p").info("it runs")
    say_ready("127.0.0.1:1")
    await stop.wait()
    return EXIT_STOPPED

sys.exit(main(Program(module="p", description="A program.", load=load,
                      log_level=lambda word: "info", run=run)))
"""


def command(folder, word, *further):
    file = folder / "p.toml"
    file.write_text(word)
    return [sys.executable, "-c", PROGRAM, "--config", str(file), *further]


@pytest.mark.parametrize(
    ("word", "status", "message"),
    [
        ("load-settings", 2, "cannot load\n"),
        ("load-broker", 2, "cannot load\n"),
        ("load-os", 2, "cannot load\n"),
        ("settings", 2, "{file}: cannot run\n"),
        ("broker", 1, "cannot run\n"),
        ("os", 1, "cannot run\n"),
    ],
)
def test_a_failure_is_one_line_and_a_status(tmp_path, word, status, message):
    ran = subprocess.run(
        command(tmp_path, word), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (status, "")
    assert ran.stderr == message.format(file=tmp_path / "p.toml")


def test_a_bug_has_a_traceback(tmp_path):
    ran = subprocess.run(
        command(tmp_path, "bug"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 1
    assert "Traceback" in ran.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_once_it_is_ready(tmp_path, number):
    words = command(tmp_path, "load-os", "--set", "well")
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready metrics=127.0.0.1:1 pid={process.pid}\n"
        process.send_signal(number)
        _, log = process.communicate()
    assert process.returncode == 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d [\d:,]+ INFO p: it runs\n", log)


def test_a_supervisor_that_does_not_listen_stops_nobody(tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    log = tmp_path / "log"
    with (
        log.open("w") as stream,
        subprocess.Popen(
            command(tmp_path, "well"), cwd=ROOT, stdout=writing, stderr=stream
        ) as process,
    ):
        os.close(writing)
        while "it runs" not in log.read_text():
            assert process.poll() is None
        process.terminate()
    assert process.returncode == 0


async def send_request(address, request):
    host, port = address.rsplit(":", 1)
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        writer.write(request)
        answer = await reader.read()
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0].decode(), body.decode()


def test_pages():
    reason: list[str] = []

    async def scenario():
        pages = Pages(lambda: "x 1\n", lambda: reason[0] if reason else None)
        address = await pages.start("127.0.0.1:0")
        get = b"GET %b HTTP/1.1\r\nhost: x\r\n\r\n"
        assert await send_request(address, get % b"/metrics") == ("HTTP/1.1 200 OK", "x 1\n")
        assert await send_request(address, get % b"/healthz?x=1") == ("HTTP/1.1 200 OK", "ok\n")
        reason.append("no store")
        status, text = await send_request(address, get % b"/healthz")
        assert (status, text) == ("HTTP/1.1 503 Service Unavailable", "no store\n")
        assert (await send_request(address, get % b"/x"))[0] == "HTTP/1.1 404 Not Found"
        head = get.replace(b"GET", b"HEAD")
        assert await send_request(address, head % b"/metrics") == ("HTTP/1.1 200 OK", "")
        post = get.replace(b"GET", b"POST")
        status, _ = await send_request(address, post % b"/metrics")
        assert status == "HTTP/1.1 405 Method Not Allowed"
        # The connection is closed without an answer; unread bytes make that a reset.
        with pytest.raises(ConnectionError):
            await send_request(address, b"x" * 200_000)
        await pages.close()

    asyncio.run(scenario())


def test_health_says_what_is_wrong():
    health = Health(quiet_max_s=60)
    assert health.reason(1000.0) is None
    assert health.failed("no disk") is True
    assert health.failed("no disk") is False
    assert health.reason(0.0) == "no disk"
    assert health.passed(10.0) is True
    assert health.passed(20.0) is False
    assert health.reason(79.0) is None
    assert health.reason(81.0) == "no pass ended for 61 s"


def test_a_wall_clock_never_goes_back(monkeypatch):
    clock = WallClock()
    first = clock.now_ms()
    assert first > 1_700_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: 0)
    assert clock.now_ms() == first


def test_a_steady_clock_does_not_follow_the_machines_time(monkeypatch):
    clock = SteadyClock()
    first = clock.now_ms()
    monkeypatch.setattr("time.time_ns", lambda: 0)
    times = [first, *(clock.now_ms() for _ in range(1000))]
    assert times == sorted(times)
    assert times[-1] > 1_700_000_000_000


def test_a_metric_has_no_value_before_it_is_set():
    metrics = ProcessMetrics("freshet_test", {"cell": "c"})
    lag = metrics.gauge("lag_seconds", "Lag")
    rows = metrics.counter("rows", "Rows")
    errors = metrics.counters("errors", "Errors", "kind")
    assert "{" not in metrics.render()
    lag(2.5)
    rows(3)
    errors("gap")
    lines = metrics.render().splitlines()
    assert 'freshet_test_lag_seconds{cell="c"} 2.5' in lines
    assert 'freshet_test_rows_total{cell="c"} 3.0' in lines
    assert metrics.value("errors_total", kind="gap") == 1
    assert metrics.value("errors_total", kind="lane") == 0
