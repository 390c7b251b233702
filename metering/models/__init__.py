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

__all__ = [
    "ClusterCoverage",
    "FileCoverage",
    "IngestState",
    "JudgedHour",
    "LaneCoverage",
    "ProvisionalMinute",
    "QualityResult",
    "ReconciledDay",
    "Reconciliation",
    "RollupPointer",
    "RollupRun",
    "StagedRow",
    "TopicName",
    "UsageFile",
    "UsageRow",
]
