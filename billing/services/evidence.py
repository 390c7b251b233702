"""The evidence pack of an invoice: all that it follows from, as a zip that stays the same."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from billing.content import invoice_content
from billing.errors import DocumentPending, NotIssued
from billing.models import Invoice, PriceVersion
from billing.money import price_text
from billing.services.documents import read_document
from metering.choices import Granularity
from metering.models import RollupRun, TopicName, UsageRow
from metering.querysets import UsageRowQuerySet
from metering.services.totals import rollup_inputs

FOLDER = Path(__file__).parents[1] / "evidence"
# Zip's own earliest time, so that the same content is the same file.
EPOCH = (1980, 1, 1, 0, 0, 0)
COLUMNS = (
    *("id", "run_id", "organization_id", "cluster_id", "topic_id", "topic", "principal", "meter"),
    *("window_start", "window_end", "quantity"),
)


def usage_rows(invoice: Invoice) -> UsageRowQuerySet:
    """The rows that an invoice was made from, by time: those of its runs, whatever came later."""
    rows = UsageRow.objects.for_organization(invoice.organization_id).billed()
    found = rows.filter(run_id__in=invoice.basis.runs, granularity=Granularity.DAY.value)
    return found.order_by("window_start", "cluster_id", "meter", "id")


def make_evidence(invoice: Invoice) -> bytes:
    """The zip. Reads in the organisation's scope. Raises `NotIssued`.

    Of the roll-ups it has the control totals of this organisation's rows: those of all of them are
    nobody else's business.
    """
    if invoice.issued_at is None:
        raise NotIssued
    rows = list(usage_rows(invoice))
    files = {
        "README.txt": (FOLDER / "pack_readme.txt").read_bytes(),
        "recompute.py": (FOLDER / "recompute.py").read_bytes(),
        "invoice.json": _json(invoice_content(invoice)),
        "prices.json": _json(_prices(invoice.price_version)),
        "usage_rows.csv": _rows_csv(invoice, rows),
        "rollup_runs.json": _json(_runs(invoice, rows)),
        "usage_files.json": _json(_usage_files(rows)),
    }
    with suppress(DocumentPending):  # the rest does not wait for it
        files["invoice.pdf"] = read_document(invoice)
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
    files["SHA256SUMS"] = "".join(sums).encode()
    return _zipped(files)


def _prices(version: PriceVersion) -> dict[str, Any]:
    catalog = version.catalog()
    return {
        "version": catalog.version,
        "currency": catalog.currency,
        "valid_from": f"{version.valid_from}",
        "prices": [
            {
                "meter": price.meter,
                "unit_price": price_text(price.unit_price),
                "unit": price.unit,
                "free_units": price.free_units,
                "free_unit": price.free_unit,
            }
            for price in catalog.prices.values()
        ],
    }


def _rows_csv(invoice: Invoice, rows: Iterable[UsageRow]) -> bytes:
    names = TopicName.objects.filter(organization_id=invoice.organization_id)
    topics = {
        (cluster_id, topic_id): name
        for cluster_id, topic_id, name in names.values_list("cluster_id", "topic_id", "name")
    }
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow(
            (
                *(row.pk, row.run_id, row.organization_id, row.cluster_id, row.topic_id),
                *(topics.get((row.cluster_id, row.topic_id), ""), row.principal, row.meter),
                *(row.window_start.isoformat(), row.window_end.isoformat(), int(row.quantity)),
            )
        )
    return text.getvalue().encode()


def _runs(invoice: Invoice, rows: Iterable[UsageRow]) -> list[dict[str, Any]]:
    totals: dict[str, dict[str, int]] = {}
    for row in rows:
        of_run = totals.setdefault(row.run_id, {})
        of_run[row.meter] = of_run.get(row.meter, 0) + int(row.quantity)
    known = RollupRun.objects.defer("inputs", "report").in_bulk(invoice.basis.runs)
    return [
        {
            "id": run_id,
            "cell": known[run_id].cell,
            "day": f"{known[run_id].day}",
            "published_at": _time(known[run_id].published_at),
            "inputs_sha256": known[run_id].inputs_sha256,
            "content_sha256": known[run_id].content_sha256,
            "control_totals": {
                meter: str(total) for meter, total in sorted(totals.get(run_id, {}).items())
            },
        }
        for run_id in invoice.basis.runs
    ]


def _usage_files(rows: Iterable[UsageRow]) -> list[dict[str, Any]]:
    """The files of the runs that have rows of this organisation."""
    runs = sorted({row.run_id for row in rows})
    return [
        {"key": each.key, "size_bytes": each.size_bytes, "sha256": each.sha256}
        for each in rollup_inputs(runs)
    ]


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _json(content: object) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _zipped(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date_time=EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return target.getvalue()
