"""The only writers of metering's rows, and what billing reads of them."""

from __future__ import annotations

from metering.services.totals import (
    BillableTotal,
    IncompleteHour,
    MonthCompleteness,
    UsageFileRef,
    billable_totals,
    is_metered,
    metered_until,
    month_completeness,
    rollup_inputs,
    usage_row_ids,
)

__all__ = [
    "BillableTotal",
    "IncompleteHour",
    "MonthCompleteness",
    "UsageFileRef",
    "billable_totals",
    "is_metered",
    "metered_until",
    "month_completeness",
    "rollup_inputs",
    "usage_row_ids",
]
