"""The status of cells, as staff sees it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from brokers.errors import MetadataError
from metering.services.status import MeterStatus, meter_status
from provisioning.cell.notes import CellHealth, health_of
from provisioning.cells import cell_store
from provisioning.models import Cell


@dataclass(frozen=True, slots=True)
class CellStatus:
    """One cell with the sums over its clusters.

    `phases`: the number of clusters in each phase. It is empty, and the sums are 0, where the
    cell's metadata store does not answer.
    """

    cell: Cell
    reachable: bool
    meter: MeterStatus
    phases: dict[str, int] = field(default_factory=dict)
    brokers: int = 0
    connections: int = 0
    restarts: int = 0
    health: CellHealth | None = None

    @property
    def id(self) -> str:
        """The cell's name."""
        return self.cell.pk


def list_cells() -> list[CellStatus]:
    """Returns every cell, sorted by name. The caller is in the system's tenancy scope."""
    meter = meter_status()
    return [_status_of(cell, meter) for cell in Cell.objects.order_by("pk")]


def _status_of(cell: Cell, meter: MeterStatus) -> CellStatus:
    try:
        statuses = list(cell_store().statuses().values())
        health = health_of(cell_store())
    except MetadataError:
        return CellStatus(cell=cell, reachable=False, meter=meter)
    return CellStatus(
        cell=cell,
        reachable=True,
        meter=meter,
        phases=dict(sorted(Counter(status.phase for status in statuses).items())),
        brokers=sum(len(status.brokers) for status in statuses),
        connections=sum(status.connections for status in statuses),
        restarts=sum(status.restarts for status in statuses),
        health=health,
    )
