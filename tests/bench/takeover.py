"""One of three brokers ends under load, and the others take over (`disturbed.py`).

`takeover_kill` kills one with -9; its keeper starts it again a second later. `takeover_hang` stops
the process (SIGSTOP) as a host that hangs, and replaces it once the load is over.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.clusters import FRESHET3, KAFKA3, ClusterSide, Watcher
from tests.bench.disturbed import Disturbance

RESPAWN_AFTER_S = 1.0


@contextmanager
def _killed(side: ClusterSide, watcher: Watcher) -> Iterator[float]:
    leader = watcher.leader()
    server = side.servers[leader - side.first_node]
    ended_at = time.monotonic()
    server.kill()
    led_s = watcher.until_led_by_others(leader) - ended_at
    server.wait()
    threading.Event().wait(RESPAWN_AFTER_S)
    side.respawn(leader)
    yield led_s


@contextmanager
def _hung(side: ClusterSide, watcher: Watcher) -> Iterator[float]:
    leader = watcher.leader()
    server = side.servers[leader - side.first_node]
    ended_at = time.monotonic()
    server.send_signal(signal.SIGSTOP)
    try:
        yield watcher.until_led_by_others(leader) - ended_at
    finally:
        server.kill()
        server.wait()
        side.respawn(leader)


KILL = Disturbance("takeover_kill", {FRESHET3: 10, KAFKA3: 40}, _killed)
HANG = Disturbance("takeover_hang", {FRESHET3: 12, KAFKA3: 100}, _hung)
