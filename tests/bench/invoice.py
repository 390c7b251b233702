"""Issues the invoices of a month for 10,000 organizations, of which one in a hundred cannot be
invoiced. PDFs are made afterwards, by workers.

A PostgreSQL of its own, with the settings that it comes with (every commit is on disk), the roles
of production and the store of numbers in a folder. Each organization has a cluster and a billed row
a day of each of four meters. What is measured is `issue_month`: completeness, totals, rating,
numbers, invoices, ledger, audit log, and the rows of who is left out. One in a hundred is of a
country without a rate. Then it runs once more, and has only these to try again.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.bench import proc
from tests.bench.database import Execute, migrated_database
from tests.bench.report import Report, progress, spread
from tests.bench.sides import FRESHET, WORK, chosen

SIDES = (FRESHET,)
ROUNDS = 3
ORGANIZATIONS = 10_000
# Every hundredth organization is of a country that the settings name no rate for.
IMPOSSIBLE = ORGANIZATIONS // 100
SELLER: dict[str, Any] = {
    "seller_country": "DE",
    "seller_address": ("Street 1", "10115 Berlin"),
    "seller_vat_id": "DE111111111",
    "vat_rates": ("DE=19",),
}
MONTH = date(2026, 9, 1)
CLOSED = datetime(2026, 10, 5, tzinfo=UTC)
# A billed row of each day and meter; 97 sizes of organizations.
ROWS = """
INSERT INTO metering_usagerow (id, run_id, granularity, organization_id, cluster_id, topic_id,
        principal, meter, window_start, window_end, quantity, billed)
    SELECT 'ur_' || n || '_' || d || '_' || m.at, 'run_' || d, 'day', 'org_' || n, 'cl_' || n, '',
        '', m.meter, (date '2026-09-01' + d) AT TIME ZONE 'UTC',
        (date '2026-09-02' + d) AT TIME ZONE 'UTC', (n % 97 + 1) * m.quantity + d, true
    FROM generate_series(1, {organizations}) n, generate_series(0, 29) d,
        (VALUES (1, 'ingress_bytes', 30000000), (2, 'egress_bytes', 50000000),
                (3, 'storage_byte_minutes', 9000000000000), (4, 'partition_minutes', 8640))
            AS m(at, meter, quantity);
ANALYZE;
"""
EMPTY = (
    "TRUNCATE billing_invoice, billing_numberseries, billing_missinginvoice, common_auditentry"
    " CASCADE"
)


def run(rounds: int | None = None, only: Sequence[str] | None = None) -> Report:
    """Runs the bench: each round issues the same month anew."""
    rounds = rounds or ROUNDS
    chosen(SIDES, only)
    # PostgreSQL and what issues work side by side.
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)))
    folder = WORK / "invoice"
    shutil.rmtree(folder, ignore_errors=True)
    samples, again, cpu, checks = [], [], [], {}
    with _filled_database() as execute:
        for number in range(rounds):
            execute(EMPTY)
            store = folder / str(number)
            before = _cpu_seconds()
            samples.append(_issue_month(store, expected=ORGANIZATIONS - IMPOSSIBLE))
            cpu.append([now - then for now, then in zip(_cpu_seconds(), before, strict=True)])
            again.append(_issue_month(store, expected=0))
            progress(f"round {number + 1} of {rounds}: {samples[-1]:.1f} s")
        checks = _checks()
    seconds = statistics.median(samples)
    return Report(
        bench="invoice",
        value=round(seconds, 2),
        unit="s",
        peer=None,
        details={
            "organizations": ORGANIZATIONS,
            "impossible": IMPOSSIBLE,
            "usage_rows": ORGANIZATIONS * 30 * 4,
            "rounds": rounds,
            "seconds": spread(samples),
            "invoices_per_second": round(ORGANIZATIONS / seconds),
            # CPU of the issuing process and of PostgreSQL's one for it. Noise hardly moves it.
            "cpu_seconds": spread([own for own, _ in cpu]),
            "postgres_cpu_seconds": spread([backend for _, backend in cpu]),
            "again_seconds": spread(again),
            "aim_seconds": 60,
            **checks,
        },
    )


@contextmanager
def _filled_database() -> Iterator[Execute]:
    """Puts Django on a new database with a month of usage; yields a way to run SQL as owner."""
    with migrated_database() as execute:
        progress(f"filling {ORGANIZATIONS} organizations")
        _make_organizations()
        execute(ROWS.format(organizations=ORGANIZATIONS))
        progress("filled")
        yield execute


def _make_organizations() -> None:
    """Makes organizations with a cluster each, and a published run of each day of the month."""
    from billing.models import BillingDetails  # noqa: PLC0415
    from console.base.accounts.models import Organization, Project  # noqa: PLC0415
    from console.base.common.tenancy import system_scope  # noqa: PLC0415
    from metering.models import ClusterCoverage, RollupPointer, RollupRun  # noqa: PLC0415
    from metering.services.totals import inputs_sha256  # noqa: PLC0415
    from provisioning.models import Cell, Cluster  # noqa: PLC0415

    numbers = range(1, ORGANIZATIONS + 1)
    before = datetime(2026, 8, 1, tzinfo=UTC)
    with system_scope():
        Organization.objects.bulk_create(
            Organization(id=f"org_{n}", name=f"Organization {n}", created_at=before)
            for n in numbers
        )
        Project.objects.bulk_create(
            Project(id=f"prj_{n}", organization_id=f"org_{n}", name="Default", is_default=True)
            for n in numbers
        )
        BillingDetails.objects.bulk_create(
            BillingDetails(organization_id=f"org_{n}", country="DE" if n % 100 else "FR")
            for n in numbers
        )
        cell = Cell.objects.create(id="local", region="local")
        Cluster.objects.bulk_create(
            Cluster(
                id=f"cl_{n}",
                organization_id=f"org_{n}",
                project_id=f"prj_{n}",
                cell=cell,
                name="orders",
                host=f"orders-{n}",
                ports=[],
                provisioned_at=before,
                created_at=before,
            )
            for n in numbers
        )
        ClusterCoverage.objects.bulk_create(
            ClusterCoverage(cluster_id=f"cl_{n}", organization_id=f"org_{n}", storage_ms="{}")
            for n in numbers
        )
        for n in range(30):
            day = MONTH + timedelta(days=n)
            sha256 = inputs_sha256([])
            run = RollupRun.objects.create(
                id=f"run_{n}", cell="local", day=day, state="published", inputs_sha256=sha256
            )
            RollupPointer.objects.create(cell="local", day=day, run=run)


def _cpu_seconds() -> tuple[float, float]:
    """CPU time of this process, and of the one that serves it in PostgreSQL."""
    from django.db import connection  # noqa: PLC0415

    connection.ensure_connection()
    backend = connection.connection.info.backend_pid
    return time.process_time(), proc.usage([backend]).cpu_seconds


def _issue_month(store: Path, *, expected: int) -> float:
    """Issues the month, with the clock set after its end; returns the seconds that it took."""
    from django.conf import settings  # noqa: PLC0415
    from django.utils import timezone  # noqa: PLC0415

    from billing.services.issuing import issue_month  # noqa: PLC0415
    from console.base.common.conf import config  # noqa: PLC0415

    billing = dataclasses.replace(config().billing, documents=str(store), **SELLER)
    settings.FRESHET = dataclasses.replace(config(), billing=billing)
    real, timezone.now = timezone.now, lambda: CLOSED
    began = time.perf_counter()
    try:
        report = issue_month(month=MONTH, by="bench")
    finally:
        timezone.now = real
    seconds = time.perf_counter() - began
    if (report.issued, len(report.failed)) != (expected, IMPOSSIBLE) or report.left_out:
        message = (
            f"{report.issued} invoices were issued and {len(report.failed)} could not be made, "
            f"not {expected} and {IMPOSSIBLE}"
        )
        raise RuntimeError(message)
    return seconds


def _checks() -> dict[str, Any]:
    """Checks the last round's invoices; returns what `details` says of them."""
    from django.db.models import Max, Min, Sum  # noqa: PLC0415

    from billing.models import (  # noqa: PLC0415
        Invoice,
        InvoiceLine,
        MissingInvoice,
        NumberBlock,
        Posting,
    )
    from console.base.common.tenancy import system_scope  # noqa: PLC0415

    with system_scope():
        numbers = Invoice.objects.aggregate(first=Min("sequence"), last=Max("sequence"))
        total = Invoice.objects.aggregate(total=Sum("total_minor"))["total"]
        return {
            "invoices": Invoice.objects.published().count(),
            "missing": MissingInvoice.objects.count(),
            "lines": InvoiceLine.objects.count(),
            "first_number": numbers["first"],
            "last_number": numbers["last"],
            "transactions": NumberBlock.objects.count(),
            "total_minor": total,
            "sum_of_postings": sum(Posting.objects.all().balance().values()),
        }
