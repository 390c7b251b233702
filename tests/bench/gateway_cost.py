"""The same load through the gateway and past it: CPU seconds per GiB, latency at 30 % load.

One broker serves both ways in turn; gateway and broker share the brokers' CPU.
`value` is the gateway's CPU seconds per GiB produced through it, `peer` the broker's for the same
bytes, so `ratio` is what the gateway adds. Consumed bytes and latencies are in `details`.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.metadata import BrokerStatus, ClusterStatus
from brokers.secrets import link_secret
from tests.bench import machine, proc
from tests.bench.generators import Load, run_light
from tests.bench.report import Report, progress, spread
from tests.bench.service import CLUSTER, Service
from tests.bench.sides import (
    BROKER_CPU,
    GENERATOR_CPU,
    FreshetSide,
    chosen,
    rotated,
    work_folder,
)
from tests.ports import free_ports

SIDES = ("direct", "gateway")
ROUNDS = 3
PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 1_000_000
WARM_UP_RECORDS = 200_000
PACED_SHARE = 0.3
PACED_SECONDS = 15
READ_AT_ONCE = 100_000

Samples = dict[str, dict[str, list[float]]]


class Door:
    """A broker that is reached directly and through a gateway, and that gateway."""

    def __init__(self) -> None:
        self.service = Service("gateway_cost", idle_timeout_ms=3_600_000)
        link, metrics = free_ports(2)
        settings = [
            f'storage.metadata = "{self.service.folder}/metadata.sqlite"',
            f'storage.dfs = "{self.service.folder}/dfs"',
            f'storage.bucket = "{self.service.folder}/bucket"',
            f'storage.cluster = "{CLUSTER}"',
            # Past the gateway nobody logs in: a login comes once a connection, and is not measured.
            'security.super_users = ["User:ANONYMOUS"]',
            f'listener.metrics = "127.0.0.1:{metrics}"',
            f'listener.link = "127.0.0.1:{link}"',
            f'listener.link_secret = "{link_secret(self.service.secret, CLUSTER)}"',
        ]
        self.broker = FreshetSide(settings)
        self.broker.start()
        address = BrokerStatus(
            slot=0,
            link=f"127.0.0.1:{link}",
            kafka=self.broker.bootstrap,
            metrics=f"127.0.0.1:{metrics}",
        )
        since_ms = time.time_ns() // 1_000_000
        self.service.store.put_status(
            CLUSTER,
            ClusterStatus(
                observed_generation=1, phase="running", since_ms=since_ms, brokers=(address,)
            ),
        )
        self.gateway_pid = self.service.start_gateway()

    def bootstrap(self, way: str) -> str:
        """The addresses at which clients of a way connect."""
        return self.service.bootstrap if way == "gateway" else self.broker.bootstrap

    def login(self, way: str) -> dict[str, object]:
        """The settings with which clients of a way log in."""
        login = self.service.login if way == "gateway" else {}
        return {"bootstrap.servers": self.bootstrap(way), **login}

    def close(self) -> None:
        """Ends all of it and removes its data."""
        self.broker.close()
        self.service.close()


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round starts broker and gateway anew and drives both ways."""
    rounds = rounds or ROUNDS
    names = chosen(SIDES, only)
    limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
    samples: Samples = {name: defaultdict(list) for name in names}
    for number in range(rounds):
        door = Door()
        try:
            rates = []
            for way in rotated(names, number):
                progress(f"round {number + 1} of {rounds}: {way}")
                rates.append(_measure_unthrottled(door, way, samples[way]))
            for way in rotated(names, number):
                _measure_paced(door, way, round(PACED_SHARE * min(rates)), samples[way])
        finally:
            door.close()
    return _report(rounds, samples, limits)


def _load(door: Door, way: str, records: int, rate: int = 0) -> Load:
    topic = f"cost-{way}"
    return Load(door.bootstrap(way), topic, records, RECORD_BYTES, door.login(way), rate)


def _measure_unthrottled(door: Door, way: str, samples: dict[str, list[float]]) -> float:
    """Produces and reads as fast as it goes; returns the records a second of producing."""
    admin = AdminClient(door.login(way))
    for outcome in admin.create_topics([NewTopic(f"cost-{way}", PARTITIONS)]).values():
        outcome.result()
    run_light(_load(door, way, WARM_UP_RECORDS))
    pids = [*door.broker.pids, door.gateway_pid]
    proc.wait_for_rest(pids)
    load = _load(door, way, RECORDS)
    gib = load.total_bytes / 2**30
    before = [proc.usage([pid]) for pid in pids]
    produced = run_light(load)
    proc.wait_for_rest(pids)
    figures = {"mib_per_s": produced.mib_per_s, **_cpu("produced", pids, before, gib)}
    before = [proc.usage([pid]) for pid in pids]
    read = _read_topic(door, way)
    figures |= _cpu("consumed", pids, before, read / 2**30)
    figures["gateway_rss_mb"] = proc.resident_mib([door.gateway_pid])
    for key, value in figures.items():
        samples[key].append(value)
    progress(f"  { {key: round(value, 2) for key, value in figures.items()} }")
    return produced.mib_per_s * 2**20 / RECORD_BYTES


def _cpu(
    what: str, pids: Sequence[int], before: Sequence[proc.Usage], gib: float
) -> dict[str, float]:
    broker, gateway = (
        proc.usage([pid]).since(earlier).cpu_seconds / gib
        for pid, earlier in zip(pids, before, strict=True)
    )
    return {f"broker_cpu_s_per_gib_{what}": broker, f"gateway_cpu_s_per_gib_{what}": gateway}


def _read_topic(door: Door, way: str) -> int:
    """Reads the whole topic and throws it away; returns the bytes of its values."""
    consumer = Consumer(
        {
            **door.login(way),
            "group.id": "cost",
            "enable.auto.commit": False,
            "enable.partition.eof": False,
        }
    )
    topic = f"cost-{way}"
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    left = RECORDS + WARM_UP_RECORDS
    while left > 0:
        left -= len(consumer.consume(READ_AT_ONCE, timeout=1.0))
    consumer.close()
    return (RECORDS + WARM_UP_RECORDS) * RECORD_BYTES


def _measure_paced(door: Door, way: str, rate: int, samples: dict[str, list[float]]) -> None:
    proc.wait_for_rest([*door.broker.pids, door.gateway_pid])
    paced = run_light(_load(door, way, rate * PACED_SECONDS, rate))
    for key in ("p50_ms", "p99_ms", "p999_ms"):
        samples[f"paced_{key}"].append(getattr(paced, key))
    progress(f"  {way} at {rate}/s: p50 {paced.p50_ms} ms, p99 {paced.p99_ms} ms")


def _report(rounds: int, samples: Samples, limits: dict[str, Any]) -> Report:
    def median(name: str, key: str) -> float | None:
        return round(statistics.median(samples[name][key]), 3) if name in samples else None

    both = len(samples) == len(SIDES)
    added = None
    if both:
        pairs = zip(
            samples["gateway"]["paced_p99_ms"], samples["direct"]["paced_p99_ms"], strict=True
        )
        added = spread([through - past for through, past in pairs], 3)
    return Report(
        bench="gateway_cost",
        value=median("gateway", "gateway_cpu_s_per_gib_produced"),
        unit="CPU-s/GiB",
        peer=median("gateway", "broker_cpu_s_per_gib_produced"),
        details={
            "rounds": rounds,
            "p99_added_ms": added,
            "consumed": {
                "gateway_cpu_s_per_gib": median("gateway", "gateway_cpu_s_per_gib_consumed"),
                "broker_cpu_s_per_gib": median("gateway", "broker_cpu_s_per_gib_consumed"),
            },
            "sides": {
                name: {key: spread(values, 3) for key, values in figures.items()}
                for name, figures in samples.items()
            },
            "machine": limits,
        },
    )
