"""The same load with the metering agent and without it: CPU seconds per GiB.

Broker and agent share the brokers' CPU. Each side starts anew in every round, in an order that
rotates; a GiB is produced once and consumed once. `value` is what broker and agent together used
per GiB, `peer` the broker alone, so `ratio` is what metering costs. The broker's own part of it
(counters, indexes) cannot be switched off and is on both sides. What is put off counts, and so does
being idle: both sides are read after the same time, when all is split and recorded.
"""

from __future__ import annotations

import statistics
import subprocess
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.metadata import CellStore, ClusterSpec
from brokers.settings.writing import overrides_of
from tests.bench import machine, proc
from tests.bench.generators import Load, run_light
from tests.bench.report import Report, progress, spread
from tests.bench.sides import (
    BROKER_CPU,
    FRESHET_PYTHON,
    GENERATOR_CPU,
    FreshetSide,
    chosen,
    rotated,
    work_folder,
)
from tests.metering.proof.usage_folder import UsageFolder
from tests.peer.processes import spawn_server, stop_servers
from tests.ports import free_ports

SIDES = ("metered", "alone")
ROUNDS = 3
CLUSTER = "bench"
TOPIC = "cost"
PARTITIONS = 100
RECORD_BYTES = 1024
RECORDS = 4_000_000
WARM_UP_RECORDS = 200_000
READ_AT_ONCE = 100_000
# From the load on: the load itself, the end of the last lane file, its split, and an agent's
# pass or two over what is left.
WINDOW_S = 120.0
ROLL_AFTER_MS = 10_000
LIMIT_S = 300.0

Samples = dict[str, dict[str, list[float]]]


class Metered:
    """A broker, and the cell around it that an agent reads."""

    def __init__(self) -> None:
        settings = [f'storage.cluster = "{CLUSTER}"', f"lane.roll_after_ms = {ROLL_AFTER_MS}"]
        self.broker = FreshetSide(settings)
        self.folder = self.broker.folder
        store = CellStore(self.folder / "metadata.sqlite")
        store.cluster(CLUSTER).create()
        store.put_spec(_spec())
        self.usage = UsageFolder(self.folder / "usage", self.folder / "late", seed=0)
        self._agents: list[subprocess.Popen[bytes]] = []

    @property
    def agent_pids(self) -> list[int]:
        """The agent's process, where one runs."""
        return [agent.pid for agent in self._agents]

    def start_agent(self) -> None:
        """Starts an agent with its own settings' defaults and waits until it works."""
        config, log = self.folder / "agent.toml", self.folder / "agent.log"
        config.write_text("\n".join(overrides_of(self._agent_settings())) + "\n")
        agent = spawn_server(
            [FRESHET_PYTHON, "-P", "-m", "metering.agent", "--config", config],
            log,
            cpus=BROKER_CPU,
            cwd=self.folder,
            # Packages that the release environment lacks.
            environment={"PYTHONPATH": sysconfig.get_paths()["purelib"]},
        )
        self._agents.append(agent)
        wait_for(lambda: "ready " in log.read_text() or agent.poll() is not None, "the agent", log)
        if agent.poll() is not None:
            message = f"the agent did not start:\n{log.read_text()[-4000:]}"
            raise RuntimeError(message)

    def _agent_settings(self) -> dict[str, dict[str, object]]:
        folder = self.folder
        return {
            "cell": {
                "id": "local",
                "metadata": folder / "metadata.sqlite",
                "dfs": folder / "dfs",
                "bucket": folder / "bucket",
            },
            "usage": {"location": folder / "usage", "progress": folder / "progress"},
        }

    def recorded_rows(self) -> int:
        """Rows in usage files."""
        return sum(int(file.said["rows"]) for file in self.usage.files())

    def wait_until_recorded(self, since_ms: int) -> None:
        """Waits until a manifest covers every lane beyond this moment."""

        def is_recorded() -> bool:
            return any(
                lane["until_ms"] >= since_ms
                for file in self.usage.files()
                for cluster in file.said["clusters"]
                for lane in cluster["lanes"]
            )

        wait_for(is_recorded, "usage is recorded", self.folder / "agent.log")

    def close(self) -> None:
        """Ends all of it and removes its data."""
        stop_servers(self._agents)
        self.broker.close()


def _spec() -> ClusterSpec:
    return ClusterSpec(
        id=CLUSTER,
        name=CLUSTER,
        organization_id="org_bench",
        generation=1,
        state="active",
        scale=1,
        idle_timeout_ms=3_600_000,
        ports=tuple(free_ports(1)),
        host=CLUSTER,
        connections_max=1000,
        wakes_per_minute_max=60,
    )


def wait_for(condition: Callable[[], bool], what: str, log: Path) -> None:
    """Waits until a condition holds; raises `RuntimeError` with a log's end if it does not."""
    clock = threading.Event()
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            message = f"never: {what}\n{log.read_text(errors='replace')[-4000:]}"
            raise RuntimeError(message)
        clock.wait(0.05)


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench."""
    rounds = rounds or ROUNDS
    names = chosen(SIDES, only)
    limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
    samples: Samples = {name: defaultdict(list) for name in names}
    for number in range(rounds):
        for name in rotated(names, number):
            progress(f"round {number + 1} of {rounds}: {name}")
            figures = _measure(metered=name == "metered")
            for key, value in figures.items():
                samples[name][key].append(value)
            progress(f"  { {key: round(value, 3) for key, value in figures.items()} }")
    return _report(rounds, samples, limits)


def _measure(*, metered: bool) -> dict[str, float]:
    side = Metered()
    try:
        side.broker.start()
        _create_topic(side.broker.bootstrap)
        run_light(Load(side.broker.bootstrap, TOPIC, WARM_UP_RECORDS, RECORD_BYTES))
        if metered:
            side.start_agent()
        proc.wait_for_rest([*side.broker.pids, *side.agent_pids])
        load = Load(side.broker.bootstrap, TOPIC, RECORDS, RECORD_BYTES)
        gib = load.total_bytes / 2**30
        began = time.monotonic()
        broker, agent = proc.usage(side.broker.pids), proc.usage(side.agent_pids)
        produced = run_light(load)
        _read_records(side.broker.bootstrap)
        if metered:
            side.wait_until_recorded(time.time_ns() // 1_000_000)
        wait_until(began + WINDOW_S)
        broker_s = proc.usage(side.broker.pids).since(broker).cpu_seconds
        agent_s = proc.usage(side.agent_pids).since(agent).cpu_seconds
        return {
            "cpu_s_per_gib": (broker_s + agent_s) / gib,
            "broker_cpu_s_per_gib": broker_s / gib,
            "agent_cpu_s_per_gib": agent_s / gib,
            "agent_share": agent_s / broker_s,
            "agent_rss_mb": proc.resident_mib(side.agent_pids),
            "usage_rows": float(side.recorded_rows()),
            "mib_per_s": produced.mib_per_s,
        }
    finally:
        side.close()


def wait_until(moment_s: float) -> None:
    """Waits for a moment; raises `RuntimeError` if it is past, as sides cannot be compared then."""
    left = moment_s - time.monotonic()
    if left < 0:
        message = f"the load took {-left:.0f} s longer than the window"
        raise RuntimeError(message)
    threading.Event().wait(left)


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for outcome in admin.create_topics([NewTopic(TOPIC, PARTITIONS)]).values():
        outcome.result()


def _read_records(bootstrap: str) -> None:
    """Reads the whole topic and throws it away."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "cost", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    left = RECORDS + WARM_UP_RECORDS
    while left > 0:
        left -= len(consumer.consume(READ_AT_ONCE, timeout=1.0))
    consumer.close()


def _report(rounds: int, samples: Samples, limits: dict[str, Any]) -> Report:
    def median(name: str, key: str) -> float | None:
        return round(statistics.median(samples[name][key]), 4) if name in samples else None

    added = None
    if len(samples) == len(SIDES):
        pairs = zip(
            samples["metered"]["cpu_s_per_gib"], samples["alone"]["cpu_s_per_gib"], strict=True
        )
        added = spread([100 * (on / off - 1) for on, off in pairs])
    return Report(
        bench="metering_cost",
        value=median("metered", "cpu_s_per_gib"),
        unit="CPU-s/GiB",
        peer=median("alone", "cpu_s_per_gib"),
        details={
            "rounds": rounds,
            "added_percent_by_pair": added,
            "agent_percent_of_broker": None
            if "metered" not in samples
            else spread([100 * share for share in samples["metered"]["agent_share"]], 3),
            "sides": {
                name: {key: spread(values, 4) for key, values in figures.items()}
                for name, figures in samples.items()
            },
            "machine": limits,
        },
    )
