"""A client connects to a sleeping cluster until its first produce is acked.

Keeper, gateway and broker are processes of the release build. Each time is one client of its own,
from before its first connection: TCP, SASL, the wake, the broker's start, Metadata, and the record
on disk (acks all). Between two the cluster goes to sleep by itself.

An idempotent producer of librdkafka asks for its id once a second until a broker is there, however
fast that was: what it sees is in `details`, by fewer rounds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.bench import machine
from tests.bench.report import Report, progress, spread
from tests.bench.service import Service
from tests.bench.sides import BROKER_CPU, FRESHET, GENERATOR_CPU, chosen, work_folder

SIDES = (FRESHET,)
ROUNDS = 100
IDEMPOTENT_SHARE = 0.1
TOPIC = "woken"
FLUSH_S = 60.0


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round is one wake."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    limits = machine.limits(work_folder(), GENERATOR_CPU, BROKER_CPU)
    service = Service("wake", idle_timeout_ms=300)
    return measure_wakes("wake", service, rounds, {"machine": limits})


def measure_wakes(bench: str, service: Service, rounds: int, details: dict[str, object]) -> Report:
    """Starts keeper and gateway of a cell, wakes its cluster again and again, and closes it."""
    acked_ms: list[float] = []
    awake_ms: list[float] = []
    idempotent_ms: list[float] = []
    try:
        service.start_keeper()
        service.start_gateway()
        _create_topic(service)
        for number in range(rounds):
            service.wait_for(["asleep"])
            began_ms = time.time_ns() / 1e6
            acked_ms.append(1000 * _produce_one(service, idempotent=False))
            status = service.store.status(service.spec.id)
            if status is not None and status.phase == "running":
                awake_ms.append(status.since_ms - began_ms)
            if number % 10 == 9:
                progress(f"{number + 1} of {rounds}: last {acked_ms[-1]:.0f} ms")
        for _ in range(max(1, round(IDEMPOTENT_SHARE * rounds))):
            service.wait_for(["asleep"])
            idempotent_ms.append(1000 * _produce_one(service, idempotent=True))
        awake = service.wait_for(["asleep"])
    finally:
        service.close()
    return Report(
        bench=bench,
        value=round(_percentile(acked_ms, 0.95), 1),
        unit="ms",
        peer=None,
        details={
            "rounds": rounds,
            "p50_ms": round(_percentile(acked_ms, 0.5), 1),
            "p95_ms": round(_percentile(acked_ms, 0.95), 1),
            "max_ms": round(max(acked_ms), 1),
            "acked_ms": spread(acked_ms, 1),
            "idempotent_acked_ms": spread(idempotent_ms, 1),
            "until_the_keeper_says_running_ms": spread(awake_ms, 1) if awake_ms else None,
            "restarts": awake.restarts,
            **details,
        },
    )


def _create_topic(service: Service) -> None:
    admin = AdminClient({"bootstrap.servers": service.bootstrap, **service.login})
    for outcome in admin.create_topics([NewTopic(TOPIC, 1)], request_timeout=FLUSH_S).values():
        outcome.result()


def _produce_one(service: Service, *, idempotent: bool) -> float:
    """Seconds from a new client to its first ack. Raises `KafkaException` where there is none."""
    failures = []
    settings = {"enable.idempotence": idempotent, "acks": "all", "linger.ms": 0, "log_level": 0}
    began = time.perf_counter()
    producer = Producer({"bootstrap.servers": service.bootstrap, **service.login, **settings})
    producer.produce(TOPIC, b"first", on_delivery=lambda error, _: failures.append(error))
    left = producer.flush(FLUSH_S)
    seconds = time.perf_counter() - began
    if left or failures != [None]:
        raise KafkaException(failures)
    return seconds


def _percentile(samples: Sequence[float], share: float) -> float:
    return sorted(samples)[round((len(samples) - 1) * share)]
