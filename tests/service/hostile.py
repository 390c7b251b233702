"""A hostile client of one organization, and what another organization notices of it.

The client sends what ends a process that decodes it with librdkafka or its Python binding, and
writes where only the service may: the faults that one client could once cause for everybody.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field

from tests.gateway.raw import Raw
from tests.provisioning.kafka.hostile import (
    join_alone,
    log_in,
    offer_raw_header,
    offer_to_internal_topic,
)
from tests.supervisor.run import Run, wait_until

from .api import Api, Connection
from .scenarios import TOPIC, let_run, produce_error, put_to_sleep

TOPIC_AUTHORIZATION_FAILED = 29
INVALID_RECORD = 87
# Seconds between two rounds. A client that only burns the processor is the subject of another test.
PAUSE_S = 0.2
# Most of the time of a round is the wait for a group's first rebalance.
ATTACKERS = 4
ROUNDS_MIN = 3
# A cluster may be woken ten times a minute.
WAKE_EVERY_S = 7.0


@dataclass
class Attacker:
    """Sends and asks in a loop until it is stopped; `stop` raises what went wrong."""

    api: Api
    cluster_id: str
    connection: Connection
    producer: Connection
    rounds: int = 0
    name: str = "odd"
    _failures: list[BaseException] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> Attacker:
        """Begins."""
        self._thread = threading.Thread(target=self._run, name="attacker")
        self._thread.start()
        return self

    def did(self, rounds: int) -> bool:
        """Tells whether it finished so many rounds, or failed and can do no more."""
        return self.rounds >= rounds or bool(self._failures)

    def stop(self) -> None:
        """Ends it after the round that it is in."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._failures:
            raise self._failures[0]

    def _run(self) -> None:
        try:
            while not self._stopping.wait(PAUSE_S):
                with closing(_connect_raw(self.connection)) as raw:
                    self._round(raw)
                with closing(_connect_raw(self.producer)) as raw:
                    code = offer_to_internal_topic(raw, "__consumer_offsets")
                    assert code == TOPIC_AUTHORIZATION_FAILED, code
                self.rounds += 1
        except BaseException as error:
            self._failures.append(error)

    def _round(self, raw: Raw) -> None:
        below = f"/clusters/{self.cluster_id}"
        code = offer_raw_header(raw, TOPIC, b"x")
        assert code == INVALID_RECORD, code
        odd = {
            f"{self.name}-{self.rounds}": b"\x00",
            f"{self.name}-{self.rounds}-json": b'{"partitions": [1]}',
        }
        for group, assignment in odd.items():
            join_alone(raw, group, assignment)
            shown = self.api.call("GET", f"{below}/groups/{group}")
            assert [member["assignments"] for member in shown["members"]] == [[]]
        for _ in range(3):
            page = self.api.call("GET", f"{below}/topics/{TOPIC}/messages?partition=0&limit=5")
            assert page["items"] == []


def a_hostile_client_harms_nobody(
    run: Run,
    seconds: float,
    *,
    rounds_min: int = ROUNDS_MIN,
    say: Callable[[str], object] = lambda line: None,
) -> None:
    """Meanwhile another organization's cluster is put to sleep and woken by a client, again and
    again; web server and keeper are the same processes at the end. `say` is called with a line
    that has how long it took.
    `rounds_min`: how often each attacker sends all that it has, at least.
    """
    before = run.children()
    owner = Api.sign_up(run.address)
    cluster_id = owner.create_cluster("hostile")
    owner.create_topic(cluster_id, TOPIC)
    full = owner.connect(cluster_id)
    producer = owner.connect(cluster_id, "writer", role="producer")
    attackers = [
        Attacker(owner, cluster_id, full, producer, name=f"odd-{n}").start()
        for n in range(ATTACKERS)
    ]
    wakes_s: list[float] = []
    try:
        victim = Api.sign_up(run.address)
        sleeper = victim.create_cluster("victim")
        victim.create_topic(sleeper, TOPIC)
        connection = victim.connect(sleeper)
        until = time.monotonic() + seconds
        while not wakes_s or time.monotonic() < until:
            put_to_sleep(victim, sleeper)
            began = time.monotonic()
            assert produce_error(connection) is None
            wakes_s.append(time.monotonic() - began)
            # The gateway holds back clients that would wake the cluster too often.
            let_run(min(WAKE_EVERY_S, max(until - time.monotonic(), 0)))
        wait_until(lambda: all(a.did(rounds_min) for a in attackers), "the attackers did it all")
    finally:
        for attacker in attackers:
            attacker.stop()
    after = run.children()
    for name in ("web", "keeper", "gateway", "worker"):
        assert after[name] == before[name], name
    wakes_s.sort()
    rounds = sum(attacker.rounds for attacker in attackers)
    say(
        f"{rounds} rounds of the attackers; {len(wakes_s)} wakes of the other cluster:"
        f" median {wakes_s[len(wakes_s) // 2]:.2f} s, worst {wakes_s[-1]:.2f} s"
    )
    victim.leave()
    owner.leave()


def _connect_raw(connection: Connection) -> Raw:
    credential = connection.credential
    return log_in(connection.bootstrap_servers, credential.username, credential.password)
