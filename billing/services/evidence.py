"""The evidence pack of an invoice: a zip with everything that the invoice follows from.

The same invoice always gives the same bytes.
"""

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
# The earliest time that zip has. A fixed time, so that the same content gives the same bytes.
EPOCH = (1980, 1, 1, 0, 0, 0)
COLUMNS = (
    *("id", "run_id", "organization_id", "cluster_id", "topic_id", "topic", "principal", "meter"),
    *("window_start", "window_end", "quantity"),
)


def usage_rows(invoice: Invoice) -> UsageRowQuerySet:
    """The usage rows that an invoice was made from, by time: the daily rows of its roll-up runs."""
    rows = UsageRow.objects.for_organization(invoice.organization_id).billed()
    of_runs = rows.filter(run_id__in=invoice.basis.runs, granularity=Granularity.DAY.value)
    return of_runs.order_by("window_start", "cluster_id", "meter", "id")


def make_evidence(invoice: Invoice) -> bytes:
    """The evidence pack as a zip. Reads in the organization's scope. Raises `NotIssued`.

    Its control totals are those of this organization's rows: the totals of whole roll-ups would
    show what other organizations use.
    """
    if invoice.issued_at is None:
        raise NotIssued
    rows = list(usage_rows(invoice))
    files = {
        "README.txt": (FOLDER / "pack_readme.txt").read_bytes(),
        "recompute.py": (FOLDER / "recompute.py").read_bytes(),
        "invoice.json": _encode_json(invoice_content(invoice)),
        "prices.json": _encode_json(_prices_json(invoice.price_version)),
        "usage_rows.csv": _rows_csv(invoice, rows),
        "rollup_runs.json": _encode_json(_runs_json(invoice, rows)),
        "usage_files.json": _encode_json(_usage_files_json(rows)),
    }
    with suppress(DocumentPending):  # the other files do not need it
        files["invoice.pdf"] = read_document(invoice)
    sums = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()]
    files["SHA256SUMS"] = "".join(sums).encode()
    return _zip_files(files)


def _prices_json(version: PriceVersion) -> dict[str, Any]:
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


def _runs_json(invoice: Invoice, rows: Iterable[UsageRow]) -> list[dict[str, Any]]:
    totals: dict[str, dict[str, int]] = {}
    for row in rows:
        of_run = totals.setdefault(row.run_id, {})
        of_run[row.meter] = of_run.get(row.meter, 0) + int(row.quantity)
    runs = RollupRun.objects.defer("inputs", "report").in_bulk(invoice.basis.runs)
    return [
        {
            "id": run_id,
            "cell": runs[run_id].cell,
            "day": f"{runs[run_id].day}",
            "published_at": _time_text(runs[run_id].published_at),
            "inputs_sha256": runs[run_id].inputs_sha256,
            "content_sha256": runs[run_id].content_sha256,
            "control_totals": {
                meter: str(total) for meter, total in sorted(totals.get(run_id, {}).items())
            },
        }
        for run_id in invoice.basis.runs
    ]


def _usage_files_json(rows: Iterable[UsageRow]) -> list[dict[str, Any]]:
    """The usage files behind the runs that have rows of this organization."""
    runs = sorted({row.run_id for row in rows})
    return [
        {"key": file.key, "size_bytes": file.size_bytes, "sha256": file.sha256}
        for file in rollup_inputs(runs)
    ]


def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _encode_json(content: object) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _zip_files(files: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date_time=EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return target.getvalue()
