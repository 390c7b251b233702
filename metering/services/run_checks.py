"""Checks of the Parquet files that a roll-up wrote: before anything of them is published.

Files are read in parts, and summed up as they are read: what stays in memory is a row for each
cluster, topic, principal and meter of the day.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero, dataset

from metering.errors import RollupFailed
from metering.periods import DAY_MS, HOUR_MS, day_start, to_ms

# Of whom and of what a row is; with its window it is the only one in its run.
PLACE = (*("cell", "organization_id", "cluster_id", "topic_id", "principal", "meter", "billed"),)
QUANTITY = pa.decimal128(38, 0)


@dataclass(frozen=True, slots=True)
class HoursContent:
    """What the files of a run's hours hold."""

    rows: int
    # By meter.
    totals: Mapping[str, int]
    # Hours outside of the day or not one hour long, without an owner, or below zero.
    misplaced: int
    # Places whose hours do not sum to their day. Charts show hours and invoices count days, so that
    # the two must agree.
    differing: int
    cells: frozenset[str]


def read_content(output: Path, day: date) -> HoursContent:
    """What is in the hours of a run's folder `output`, compared with its days.

    Raises `RollupFailed` where they cannot be read.
    """
    try:
        hours = _open_table(output / "hours")
        sums = _sum_places(hours, sign=1)
        both = pa.concat_tables([sums, _sum_places(_open_table(output / "days"), sign=-1)])
        by_place = both.group_by(list(PLACE)).aggregate([("quantity", "sum")])
        unequal = pc.not_equal(by_place.column("quantity_sum"), pa.scalar(0, QUANTITY))
        totals = sums.group_by("meter").aggregate([("quantity", "sum")]).to_pydict()
        return HoursContent(
            rows=hours.count_rows(),
            totals={
                meter: int(total)
                for meter, total in zip(totals["meter"], totals["quantity_sum"], strict=True)
            },
            misplaced=hours.count_rows(filter=_is_misplaced(to_ms(day_start(day)))),
            differing=pc.sum(unequal).as_py() or 0,
            cells=frozenset(sums.column("cell").unique().to_pylist()),
        )
    except (pa.ArrowException, OSError) as error:
        message = f"what the job wrote cannot be read: {error}"
        raise RollupFailed(message) from error


def _open_table(folder: Path) -> dataset.Dataset:
    files = sorted(str(file) for file in folder.glob("*.parquet"))
    if not files:
        return dataset.dataset(_schema().empty_table())
    return dataset.dataset(files, schema=_schema(), format="parquet")


def _schema() -> pa.Schema:
    texts = [(name, pa.string()) for name in PLACE if name != "billed"]
    times = [(name, pa.int64()) for name in ("window_start_ms", "window_end_ms")]
    return pa.schema([*texts, ("billed", pa.bool_()), *times, ("quantity", QUANTITY)])


def _sum_places(table: dataset.Dataset, *, sign: int) -> pa.Table:
    """The sum of each place, times 1 or -1."""
    names = [*PLACE, "quantity"]
    scan = acero.Declaration("scan", acero.ScanNodeOptions(table, columns=names))
    columns = acero.Declaration(
        "project", acero.ProjectNodeOptions([pc.field(name) for name in names], names)
    )
    sums = acero.Declaration(
        "aggregate",
        acero.AggregateNodeOptions([("quantity", "hash_sum", None, "quantity")], keys=list(PLACE)),
    )
    summed = acero.Declaration.from_sequence([scan, columns, sums]).to_table()
    summed = summed.select(names)
    if sign < 0:
        at = summed.schema.get_field_index("quantity")
        summed = summed.set_column(at, "quantity", pc.negate(summed.column("quantity")))
    return summed


def _is_misplaced(start_ms: int) -> pc.Expression:
    start, end = pc.field("window_start_ms"), pc.field("window_end_ms")
    within = pc.subtract(start, start_ms)
    return (
        (start < start_ms)
        | (end > start_ms + DAY_MS)
        | (pc.subtract(end, start) != HOUR_MS)
        | (pc.multiply(pc.divide(within, HOUR_MS), HOUR_MS) != within)
        | (pc.field("organization_id") == "")
        | (pc.field("cluster_id") == "")
        | (pc.field("quantity") < pa.scalar(0, QUANTITY))
    )
