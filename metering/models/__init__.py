"""The models of metering."""

from __future__ import annotations

from metering.models.ingest import (
    ClusterCoverage,
    FileCoverage,
    IngestState,
    LaneCoverage,
    UsageFile,
)
from metering.models.minutes import JudgedHour, ProvisionalMinute, TopicName
from metering.models.reconciliation import ReconciledDay, Reconciliation
from metering.models.rollup import QualityResult, RollupPointer, RollupRun
from metering.models.rows import StagedRow, UsageRow
from metering.models.running import (
    MonthPart,
    ProvisionalPart,
    RunningDay,
    RunningHour,
    RunningMonth,
    TotalsCheck,
)

__all__ = [
    "ClusterCoverage",
    "FileCoverage",
    "IngestState",
    "JudgedHour",
    "LaneCoverage",
    "MonthPart",
    "ProvisionalMinute",
    "ProvisionalPart",
    "QualityResult",
    "ReconciledDay",
    "Reconciliation",
    "RollupPointer",
    "RollupRun",
    "RunningDay",
    "RunningHour",
    "RunningMonth",
    "StagedRow",
    "TopicName",
    "TotalsCheck",
    "UsageFile",
    "UsageRow",
]
