"""The tables of provisioning."""

from __future__ import annotations

from provisioning.models.announcement import Announcement
from provisioning.models.break_glass import BreakGlass
from provisioning.models.cell import Cell, CellPort
from provisioning.models.cluster import Cluster
from provisioning.models.credential import Credential
from provisioning.models.operation import Operation
from provisioning.models.reading import RecordReading
from provisioning.models.sample import ClusterSample, SampleFile, SampleHour, SampleMinute

__all__ = [
    "Announcement",
    "BreakGlass",
    "Cell",
    "CellPort",
    "Cluster",
    "ClusterSample",
    "Credential",
    "Operation",
    "RecordReading",
    "SampleFile",
    "SampleHour",
    "SampleMinute",
]
