"""Checks of the cell for `/readyz`."""

from __future__ import annotations

from provisioning.cells import cell_store


def check_cell() -> None:
    """The cell's metadata store answers. Any key will do."""
    cell_store().status("cl_probe")
