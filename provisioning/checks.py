"""Checks of the cell for `/readyz`."""

from __future__ import annotations

from provisioning.cells import cell_store


def check_cell() -> None:
    """Raises `MetadataError` where the cell's metadata store does not answer a read of any key."""
    cell_store().status("cl_probe")
