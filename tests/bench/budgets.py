"""Budgets and costs beside a large service: how long an evaluation of 10,000 organizations takes,
and a month's costs at a large organization.

A PostgreSQL of its own, with the settings that it comes with and the roles of production. Each
organization has a cluster, a budget, and a billed row a day of each of four meters; one in a
hundred spends more than its budget allows, which refuses its traffic. Three more organizations have
100, 5,000 and 50,000 topics with rows of each day, and of one day of the month before. Everything
is rolled up, and the running totals are made from the rows by the command that does so.

The first evaluation finds that everybody spent another amount; the second one is killed once it
has refused somebody, and done again; the third finds that every amount grew by a little and nothing
follows. Costs are asked for through REST within this process, so that the network is not measured:
at a rate at which no request waits for the share of time that an organization has, half of them
with the dearest topics chosen anew. As in the server, what was loaded before is frozen.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from tests.bench.database import Execute, migrated_database
from tests.bench.report import Report, progress, spread
from tests.bench.sides import FRESHET, chosen

SIDES = (FRESHET,)
ROUNDS = 5
ORGANIZATIONS = 10_000
# Every hundredth organization has spent more than its budget allows.
OVERSPENT = ORGANIZATIONS // 100
# Clusters and topics of each, by organization.
SIZES = ((1, 100), (5, 1_000), (50, 1_000))
PRINCIPALS = 10
# Requests of each kind, and how many a second at most.
REQUESTS, REQUESTS_PER_S = 100, 8
MONTH, MONTH_BEFORE = date(2026, 9, 1), date(2026, 8, 1)
DAYS = 30
NOW = datetime(2026, 9, 30, 12, tzinfo=UTC)
AIM_EVALUATION_S, AIM_COSTS_MS = 10, 100

# Sizes of 97 kinds: from 12 to 1,200 GiB of ingress in a month, more of egress, some storage.
ROWS = """
INSERT INTO metering_usagerow (id, run_id, granularity, organization_id, cluster_id, topic_id,
        principal, meter, window_start, window_end, quantity, billed)
    SELECT 'ur_' || n || '_' || d || '_' || m.at, 'run_' || d, 'day', 'org_' || n, 'cl_' || n, '',
        '', m.meter, (date '2026-09-01' + d) AT TIME ZONE 'UTC',
        (date '2026-09-02' + d) AT TIME ZONE 'UTC',
        (n % 97 + 1) * m.quantity * CASE WHEN n % 100 = 0 THEN 100 ELSE 1 END + d, true
    FROM generate_series(1, {organizations}) n, generate_series(0, 29) d,
        (VALUES (1, 'ingress_bytes', 450000000), (2, 'egress_bytes', 500000000),
                (3, 'storage_byte_minutes', 9000000000000), (4, 'partition_minutes', 8640))
            AS m(at, meter, quantity)
"""
# Storage of each topic on each day, and traffic by one of ten principals on some days; of {days}
# days from {first} on, by the runs {run}.
LARGE_ROWS = """
INSERT INTO metering_usagerow (id, run_id, granularity, organization_id, cluster_id, topic_id,
        principal, meter, window_start, window_end, quantity, billed)
    SELECT '{run}' || '{name}_' || c || '_' || t || '_' || d || '_' || m.at, '{run}' || d, 'day',
        '{owner}', 'cl_{name}_' || c, lpad(to_hex(t), 32, '0'),
        CASE WHEN m.at < 3 THEN 'User:cred_' || t % {principals} ELSE '' END,
        m.meter, (date '{first}' + d) AT TIME ZONE 'UTC',
        (date '{first}' + d + 1) AT TIME ZONE 'UTC', (t * 7919 % 1009 + 1) * m.quantity + d, true
    FROM generate_series(1, {clusters}) c, generate_series(1, {topics}) t,
        generate_series(0, {days} - 1) d,
        (VALUES (1, 'ingress_bytes', 30000000), (2, 'egress_bytes', 50000000),
                (3, 'storage_byte_minutes', 90000000000), (4, 'partition_minutes', 1440))
            AS m(at, meter, quantity)
    WHERE m.at > 2 OR (t + d) % 10 = 0
"""
TOPIC_NAMES = """
INSERT INTO metering_topicname (organization_id, cluster_id, topic_id, name)
    SELECT '{owner}', 'cl_{name}_' || c, lpad(to_hex(t), 32, '0'), 'topic-' || t
    FROM generate_series(1, {clusters}) c, generate_series(1, {topics}) t
"""
# What the meter says now of the large organization's storage, and how far it is known.
HOURS = """
INSERT INTO metering_runninghour (organization_id, cluster_id, hour, meter, quantity, first_minute,
        last_minute)
    SELECT '{owner}', 'cl_{name}_' || c, h, meter, 1000000, h, h + interval '59 minutes'
    FROM generate_series(1, {clusters}) c,
        generate_series(timestamptz '2026-09-30 00:00Z', '2026-09-30 11:00Z', '1 hour') h,
        (VALUES ('storage_byte_minutes'), ('partition_minutes')) AS m(meter)
"""
# Everybody spends some cents more, which is 1 GiB of egress.
MORE = """
UPDATE metering_runningmonth SET quantity = quantity + 1073741824
WHERE month = '2026-09-01' AND meter = 'egress_bytes'
"""
LESS = MORE.replace(" + ", " - ")
UNEVALUATED = """
UPDATE billing_budget SET spent_minor = 0, kept_minor = 0, state = 'ok', suspended_at = NULL,
    acting_as = '', evaluated_at = '2026-09-01'
"""
NO_EVENTS = "DELETE FROM accounts_trafficlimit WHERE source = 'budget'"


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: the evaluations of each round, then costs once."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
    with migrated_database() as execute:
        from django.utils import timezone  # noqa: PLC0415

        real, timezone.now = timezone.now, lambda: NOW
        try:
            return _measure(execute, rounds)
        finally:
            timezone.now = real


def _measure(execute: Execute, rounds: int) -> Report:
    keys, rebuilding_s = _fill(execute)
    firsts: list[float] = []
    again: list[float] = []
    grown: list[float] = []
    for number in range(rounds):
        _reset(execute)
        firsts.append(_evaluate(expected=OVERSPENT))
        _reset(execute)
        again.append(_evaluate_after_a_kill())
        execute(MORE)
        grown.append(_evaluate(expected=OVERSPENT))
        execute(LESS)
        progress(f"round {number + 1} of {rounds}: {firsts[-1]:.1f} s")
    costs = _ask_for_costs(keys)
    comparing_s = _timed(_compare)
    return Report(
        bench="budgets",
        value=round(statistics.median(firsts), 2),
        unit="s",
        peer=None,
        details={
            "organizations": ORGANIZATIONS,
            "overspent": OVERSPENT,
            "rounds": rounds,
            "evaluation_seconds": spread(firsts),
            "after_a_kill_seconds": spread(again),
            "grown_seconds": spread(grown),
            "aim_evaluation_seconds": AIM_EVALUATION_S,
            "costs": costs,
            "aim_costs_p99_ms": AIM_COSTS_MS,
            "rebuilding_month_seconds": round(rebuilding_s, 1),
            "comparing_month_seconds": round(comparing_s, 1),
        },
    )


def _fill(execute: Execute) -> tuple[dict[int, str], float]:
    """Makes everything; returns a key of each organization with many topics, by their number, and
    the seconds of the rebuild of the month."""
    from metering.services.running import rebuild_month  # noqa: PLC0415

    progress(f"filling {ORGANIZATIONS} organizations")
    _make_organizations()
    execute(ROWS.format(organizations=ORGANIZATIONS))
    keys = {}
    for clusters, topics in SIZES:
        name = f"l{clusters * topics}"
        owner, keys[clusters * topics] = _make_large(name, clusters)
        names = {"owner": owner, "name": name, "clusters": clusters, "topics": topics}
        names["principals"] = PRINCIPALS
        execute(LARGE_ROWS.format(**names, first=MONTH, days=DAYS, run="run_"))
        execute(LARGE_ROWS.format(**names, first=MONTH_BEFORE, days=1, run="run_before_"))
        execute(TOPIC_NAMES.format(**names))
        execute(HOURS.format(**names))
    rebuild_month(MONTH_BEFORE)
    seconds = _timed(lambda: rebuild_month(MONTH))
    execute("VACUUM ANALYZE")
    progress(f"filled; the totals took {seconds:.1f} s")
    return keys, seconds


def _make_organizations() -> None:
    """Makes organizations with a budget each, and a published run of each day of the month."""
    from billing.models import Budget  # noqa: PLC0415
    from console.base.accounts.models import Organization  # noqa: PLC0415
    from console.base.common.tenancy import system_scope  # noqa: PLC0415
    from metering.models import RollupPointer, RollupRun  # noqa: PLC0415

    before = datetime(2026, 8, 1, tzinfo=UTC)
    with system_scope():
        Organization.objects.bulk_create(
            Organization(id=f"org_{n}", name=f"Organization {n}", created_at=before)
            for n in range(1, ORGANIZATIONS + 1)
        )
        Budget.objects.bulk_create(
            Budget(
                id=f"bud_{n}",
                organization_id=f"org_{n}",
                name="Team",
                amount_minor=1_000_000 if n % 100 else 100,
                currency="USD",
                thresholds=[50, 90, 100],
                action="suspend",
                month=MONTH,
                evaluated_at=before,
                spent_minor=0,
                state="ok",
            )
            for n in range(1, ORGANIZATIONS + 1)
        )
        days = {f"run_{n}": MONTH + timedelta(days=n) for n in range(DAYS)}
        for name, day in (days | {"run_before_0": MONTH_BEFORE}).items():
            run = RollupRun.objects.create(
                id=name, cell="local", day=day, state="published", published_at=before
            )
            RollupPointer.objects.create(cell="local", day=day, run=run)


def _make_large(name: str, clusters: int) -> tuple[str, str]:
    """The id of a new organization with so many clusters, and the secret of a key of it."""
    from console.base.accounts.models import Organization  # noqa: PLC0415
    from console.base.common.tenancy import organization_scope  # noqa: PLC0415
    from metering.models import ClusterCoverage  # noqa: PLC0415
    from metering.periods import to_ms  # noqa: PLC0415
    from provisioning.models import Cell, Cluster  # noqa: PLC0415
    from tests.console.factories import make_tenant  # noqa: PLC0415

    before = datetime(2026, 8, 1, tzinfo=UTC)
    tenant = make_tenant(name)
    cell, _ = Cell.objects.get_or_create(id="local", defaults={"region": "local"})
    with organization_scope(tenant.id):
        Organization.objects.filter(pk=tenant.id).update(created_at=before)
        Cluster.objects.bulk_create(
            Cluster(
                id=f"cl_{name}_{n}",
                organization_id=tenant.id,
                project=tenant.project,
                cell=cell,
                name=f"orders-{n}",
                host=f"{name}-{n}",
                ports=[],
                provisioned_at=before,
                created_at=before,
            )
            for n in range(1, clusters + 1)
        )
        ClusterCoverage.objects.bulk_create(
            ClusterCoverage(
                cluster_id=f"cl_{name}_{n}",
                organization_id=tenant.id,
                storage_ms="{}",
                as_of_ms=to_ms(NOW),
            )
            for n in range(1, clusters + 1)
        )
    return tenant.id, tenant.key


def _reset(execute: Execute) -> None:
    execute("DELETE FROM billing_budgetevent")
    execute("DELETE FROM common_outboxentry")
    execute(NO_EVENTS)
    execute(UNEVALUATED)


def _evaluate(*, expected: int) -> float:
    """Evaluates all budgets, after which so many refuse traffic; returns the seconds."""
    from billing.budgets.evaluation import evaluate_budgets  # noqa: PLC0415

    seconds = _timed(evaluate_budgets)
    refused, unevaluated = _outcome()
    if (refused, unevaluated) != (expected, 0):
        message = f"{refused} budgets refuse traffic, and {unevaluated} were not evaluated"
        raise RuntimeError(message)
    return seconds


def _evaluate_after_a_kill() -> float:
    """Kills an evaluation, then evaluates; returns the seconds of both together."""
    from django.db import connections  # noqa: PLC0415

    # Neither process may use the other's connection.
    connections.close_all()
    began = time.perf_counter()
    child = os.fork()
    if child == 0:
        from billing.budgets.evaluation import evaluate_budgets  # noqa: PLC0415

        evaluate_budgets()
        os._exit(0)
    while not _outcome()[0]:
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _evaluate(expected=OVERSPENT)
    return time.perf_counter() - began


def _outcome() -> tuple[int, int]:
    """How many organizations' traffic is refused, and how many budgets have an old amount."""
    from billing.models import Budget  # noqa: PLC0415
    from console.base.accounts.models import TrafficLimit  # noqa: PLC0415
    from console.base.common.tenancy import system_scope  # noqa: PLC0415

    with system_scope():
        refused = TrafficLimit.objects.filter(source="budget", kind="refuse").count()
        return refused, Budget.objects.filter(spent_minor=0).count()


def _ask_for_costs(keys: Mapping[int, str]) -> dict[str, dict[str, float]]:
    """What requests for costs take, by topics, days, and whether the dearest are chosen anew."""
    from django.conf import settings  # noqa: PLC0415

    from console.base.common.conf import config  # noqa: PLC0415

    limits = dataclasses.replace(config().limits, api_requests_per_second=100_000)
    settings.FRESHET = dataclasses.replace(config(), limits=limits)
    gc.collect()
    gc.freeze()
    taken = {}
    for topics, key in keys.items():
        for month, days in ((MONTH, DAYS), (MONTH_BEFORE, 1)):
            for anew in (True, False):
                samples = sorted(_ask(key, f"{month:%Y-%m}", anew=anew))
                name = f"{topics}_topics_{days}_days{'_anew' if anew else ''}"
                taken[name] = {
                    "p50_ms": round(statistics.median(samples), 1),
                    "p99_ms": round(samples[len(samples) * 99 // 100], 1),
                    "min_ms": round(samples[0], 1),
                }
                progress(f"costs, {name}: {taken[name]}")
    return taken


def _ask(key: str, month: str, *, anew: bool) -> list[float]:
    """The milliseconds of requests for a month's costs."""
    from django.test import Client  # noqa: PLC0415

    from metering.services.choosing import chosen_parts  # noqa: PLC0415

    client = Client(headers={"Authorization": f"Bearer {key}"})
    samples, clock, due = [], threading.Event(), time.perf_counter()
    for _ in range(REQUESTS + 5):
        due += 1 / REQUESTS_PER_S
        clock.wait(max(0.0, due - time.perf_counter()))
        if anew:
            chosen_parts.forget()
        began = time.perf_counter()
        answer = client.get("/api/v1/costs", {"month": month})
        samples.append(1000 * (time.perf_counter() - began))
        _check_costs(answer.status_code, answer.json())
    # The first ones load code.
    return samples[5:]


def _check_costs(status: int, shown: Mapping[str, Any]) -> None:
    """Raises `RuntimeError` where the parts are not what the month costs, or it costs nothing."""
    kinds = ("lines", "by_meter", "by_cluster", "by_topic", "by_principal", "by_day")
    sums = {sum(part["amount_minor"] for part in shown.get(kind, ())) for kind in kinds}
    if status != 200 or sums != {shown["total_minor"]} or not shown["total_minor"]:
        message = f"costs answered {status}: {shown}"[:500]
        raise RuntimeError(message)


def _compare() -> None:
    from metering.services.comparing import compare_month  # noqa: PLC0415

    comparison = compare_month(MONTH)
    if comparison.differing:
        message = f"totals differ: {comparison.named[:3]}"
        raise RuntimeError(message)


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
