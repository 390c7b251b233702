"""Cells, and the ports that their gateways give to clusters. Neither belongs to a tenant."""

from __future__ import annotations

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX

PORT_MAX = 65_535


class Cell(models.Model):
    """A cell, in which clusters are placed. How to reach it is a setting and not stored here."""

    id = models.CharField(primary_key=True, max_length=ID_CHARS_MAX)
    region = models.CharField(max_length=64)
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.pk


class CellPort(models.Model):
    """A port of a cell's gateway that belongs to a cluster until its deletion."""

    cell = models.ForeignKey(Cell, on_delete=models.PROTECT, related_name="ports")
    port = models.PositiveIntegerField()
    cluster_id = models.CharField(max_length=ID_CHARS_MAX)
    # Which of the cluster's ports it is, from 0: see `Cluster.ports`. The column keeps its name.
    place = models.PositiveSmallIntegerField(db_column="slot")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cell", "port"], name="one_cluster_a_port"),
            models.UniqueConstraint(fields=["cluster_id", "place"], name="one_port_a_place"),
        )

    def __str__(self) -> str:
        return f"{self.cell_id}:{self.port}"
