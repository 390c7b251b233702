"""From bytes at a real broker to the suspension in it: how long an overspent budget takes to act,
with the budgets of 10,000 others beside it, also where a Celery worker is killed in the middle.

All of the service runs as `make up` starts it, with the settings that it comes with: nothing rolls,
meters, ingests or evaluates more often than for a customer. An organization has used what is free
but for the last bytes, and a budget of one cent that suspends. It produces these. They fill no lane
file, so that their usage is known once the file has ended by its age. From their acknowledgement on
it is measured when the usage is counted, when the limit is decided, and when the broker refuses
produce, and fetch, to clients that go on. All that while everybody else spends more every ten
seconds, so that each evaluation has 10,000 changed amounts to write.

In every other run the worker, with all of its processes, is killed by SIGKILL at the moment at
which the usage is counted. `value` is the longest time to a refusal of both; the aim is 300 s.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer

from console.programs.supervisor.processes import members_of
from tests.bench.report import Report, progress
from tests.bench.sides import FRESHET, chosen
from tests.service.api import Api, Connection
from tests.service.traffic import librdkafka_settings
from tests.supervisor.run import Run

SIDES = (FRESHET,)
ROUNDS = 2
OTHERS = 10_000
AIM_S = 300.0
# Nothing is ever as slow as this.
LIMIT_S = 900.0
GIB, MIB = 2**30, 2**20
# A quarter of a lane's first file.
PRODUCED = MIB // 4
# What is free, and the eighth of a GiB beyond it that still rounds to no cent, but for half of it.
USED_BEFORE = 10 * GIB + GIB // 8 - PRODUCED // 2
TOPIC, OTHER_CLUSTER = "orders", "cl_other_"
MORE_EVERY_S = 10.0
PAUSE_S = 0.25
INGRESS, EGRESS = "ingress_bytes", "egress_bytes"


@dataclass
class Delay:
    """Seconds after the last byte was acknowledged."""

    killed: bool
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def refused_s(self) -> float:
        """When both produce and fetch were refused."""
        return max(self.seconds["produce_refused"], self.seconds["fetch_refused"])


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: in each round one organization undisturbed, and one with a killed worker."""
    chosen(SIDES, only)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    # A short path, because it holds Unix sockets.
    folder = Path(tempfile.mkdtemp(prefix="freshet-delay-"))
    service = Run(folder / "home")
    try:
        service.up()
        seeded_s = _seed(service)
        progress(f"{OTHERS} others have budgets after {seeded_s:.0f} s")
        delays = [
            _one_delay(service, killed) for _ in range(rounds or ROUNDS) for killed in (False, True)
        ]
        service.stop()
    finally:
        if service.started:
            service.kill_everything()
        shutil.rmtree(folder, ignore_errors=True)
    return Report(
        bench="budget_delay",
        value=max(delay.refused_s for delay in delays),
        unit="s",
        peer=None,
        details={
            "others": OTHERS,
            "aim_seconds": AIM_S,
            "undisturbed": [delay.seconds for delay in delays if not delay.killed],
            "worker_killed": [delay.seconds for delay in delays if delay.killed],
        },
    )


def _seed(service: Run) -> float:
    """Gives the service's database everybody else; returns the seconds that it took."""
    os.environ.update(service.environment() | {"DJANGO_SETTINGS_MODULE": "console.settings"})
    import django  # noqa: PLC0415 (needs its settings named first)

    began = time.perf_counter()
    django.setup()
    # Each request would be a line.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    from billing.models import Budget  # noqa: PLC0415
    from console.base.accounts.models import Organization  # noqa: PLC0415
    from console.base.common.clock import now  # noqa: PLC0415
    from console.base.common.tenancy import system_scope  # noqa: PLC0415
    from metering.models import RunningMonth  # noqa: PLC0415

    at, month = now() - timedelta(days=1), _month()
    numbers = range(OTHERS)
    with system_scope():
        Organization.objects.bulk_create(
            [Organization(id=f"org_{n}", name=f"Other {n}", created_at=at) for n in numbers],
            batch_size=1000,
        )
        Budget.objects.bulk_create(
            [
                Budget(
                    id=f"bud_{n}",
                    organization_id=f"org_{n}",
                    name="Team",
                    amount_minor=1_000_000,
                    currency="USD",
                    thresholds=[50, 90, 100],
                    action="suspend",
                    month=month,
                    evaluated_at=at,
                    spent_minor=0,
                    state="ok",
                )
                for n in numbers
            ],
            batch_size=1000,
        )
        RunningMonth.objects.bulk_create(
            [
                RunningMonth(
                    organization_id=f"org_{n}",
                    cluster_id=f"{OTHER_CLUSTER}{n}",
                    month=month,
                    meter=meter,
                    quantity=(n % 97 + 1) * GIB,
                )
                for n in numbers
                for meter in (INGRESS, EGRESS)
            ],
            batch_size=1000,
        )
    return time.perf_counter() - began


def _one_delay(service: Run, killed: bool) -> Delay:
    """Has a new organization overspend its budget, and waits until its traffic is refused."""
    api = Api.sign_up(service.address)
    cluster_id = api.create_cluster("orders")
    api.create_topic(cluster_id, TOPIC, partitions=1)
    connection = api.connect(cluster_id)
    organization_id: str = api.call("GET", "/organizations/current")["id"]
    _use_before(organization_id, cluster_id)
    budget = {"name": "Cent", "amount_minor": 1, "action": "suspend", "thresholds": [100]}
    api.call("POST", "/budgets", budget, status=201)
    delay = Delay(killed)
    overspend(connection)
    began = time.monotonic()
    clients = Clients(connection, began, delay.seconds)
    clients.start()
    try:
        _follow(service, delay, organization_id, cluster_id, began)
        clients.wait()
    finally:
        clients.stop()
    progress(f"worker killed: {killed}; {delay.seconds}")
    api.leave()
    return delay


def _use_before(organization_id: str, cluster_id: str) -> None:
    """Has the organization have used nearly all that costs nothing."""
    from console.base.common.tenancy import organization_scope  # noqa: PLC0415
    from metering.models import RunningMonth  # noqa: PLC0415

    with organization_scope(organization_id):
        RunningMonth.objects.create(
            organization_id=organization_id,
            cluster_id=cluster_id,
            month=_month(),
            meter=INGRESS,
            quantity=USED_BEFORE,
        )


def overspend(connection: Connection) -> None:
    """Produces `PRODUCED` bytes, and returns once they are acknowledged."""
    producer = Producer(librdkafka_settings(connection, log_level=0))
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    for _ in range(16):
        producer.produce(TOPIC, os.urandom(PRODUCED // 16), partition=0, on_delivery=delivered)
    if producer.flush(LIMIT_S) or failures:
        message = f"what is to be metered was not taken: {failures}"
        raise RuntimeError(message)


class Clients:
    """A producer and a consumer that go on until they are refused, and note when that was."""

    def __init__(self, connection: Connection, began: float, seconds: dict[str, float]) -> None:
        self._connection, self._began, self._seconds = connection, began, seconds
        self._leave = threading.Event()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._produce, self._fetch)
        ]

    def start(self) -> None:
        """Begins."""
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Waits until both were refused. Raises `RuntimeError` where that takes too long."""
        for thread in self._threads:
            thread.join(max(0.0, self._began + LIMIT_S - time.monotonic()))
        missing = {"produce_refused", "fetch_refused"} - self._seconds.keys()
        if missing:
            message = f"not within {LIMIT_S:g} s: {sorted(missing)}"
            raise RuntimeError(message)

    def stop(self) -> None:
        """Ends both, refused or not."""
        self._leave.set()

    def _refused(self, what: str) -> None:
        self._seconds[what] = round(time.monotonic() - self._began, 1)

    def _produce(self) -> None:
        producer = Producer(librdkafka_settings(self._connection, log_level=0))
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None and error.code() == KafkaError.POLICY_VIOLATION:
                errors.append(error)

        while not errors and not self._leave.wait(PAUSE_S):
            producer.produce(TOPIC, b"probe", partition=0, on_delivery=delivered)
            producer.flush(LIMIT_S)
        if errors:
            self._refused("produce_refused")

    def _fetch(self) -> None:
        more = {"group.id": "probe", "auto.offset.reset": "earliest", "log_level": 0}
        consumer = Consumer(librdkafka_settings(self._connection, **more))
        consumer.subscribe([TOPIC])
        try:
            while not self._leave.is_set():
                message = consumer.poll(PAUSE_S)
                error = None if message is None else message.error()
                if error is not None and error.code() == KafkaError.POLICY_VIOLATION:
                    self._refused("fetch_refused")
                    return
        finally:
            consumer.close()


def _follow(
    service: Run, delay: Delay, organization_id: str, cluster_id: str, began: float
) -> None:
    """Notes when the usage is counted and the limit decided; everybody else spends meanwhile."""
    more_at = began
    clock = threading.Event()
    while "decided" not in delay.seconds:
        passed = time.monotonic() - began
        if passed > LIMIT_S:
            message = f"nothing was decided within {LIMIT_S:g} s: {delay.seconds}"
            raise RuntimeError(message)
        if time.monotonic() >= more_at:
            _everybody_spends()
            more_at += MORE_EVERY_S
        counted, decided = _progress_of(organization_id, cluster_id)
        if counted and "counted" not in delay.seconds:
            delay.seconds["counted"] = round(time.monotonic() - began, 1)
            if delay.killed:
                _kill_worker(service)
                delay.seconds["worker_killed"] = round(time.monotonic() - began, 1)
        if decided:
            delay.seconds["decided"] = round(time.monotonic() - began, 1)
        clock.wait(PAUSE_S)


def _progress_of(organization_id: str, cluster_id: str) -> tuple[bool, bool]:
    """Whether what was produced is counted, and whether the traffic is to be refused."""
    from console.base.accounts.models import TrafficLimit  # noqa: PLC0415
    from console.base.common.tenancy import organization_scope  # noqa: PLC0415
    from metering.models import RunningMonth  # noqa: PLC0415

    with organization_scope(organization_id):
        rows: Any = RunningMonth.objects.filter(cluster_id=cluster_id, meter=INGRESS)
        counted = rows.filter(quantity__gte=USED_BEFORE + PRODUCED).exists()
        return counted, TrafficLimit.objects.filter(source="budget", kind="refuse").exists()


def _everybody_spends() -> None:
    from django.db.models import F  # noqa: PLC0415

    from console.base.common.tenancy import system_scope  # noqa: PLC0415
    from metering.models import RunningMonth  # noqa: PLC0415

    with system_scope():
        others = RunningMonth.objects.filter(cluster_id__startswith=OTHER_CLUSTER, meter=EGRESS)
        others.update(quantity=F("quantity") + GIB)


def _kill_worker(service: Run) -> None:
    """Kills the worker of everyday tasks with all of its processes."""
    leader = service.children()["worker"]
    processes = {leader, *members_of(leader.pid, f"FRESHET_RUN={service.mark()}")}
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _month() -> date:
    from console.base.common.clock import now  # noqa: PLC0415

    return now().date().replace(day=1)
