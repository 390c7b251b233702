"""Removes the data of purged clusters from the shared file system and the object store."""

from __future__ import annotations

import shutil
from contextlib import suppress

from brokers.objects import remove_below
from console.base.common.conf import config
from console.base.common.ids import is_id


def remove_storage(cluster_id: str) -> None:
    """Removes all data that a cluster stored. It may be repeated.

    On the shared file system it removes the folder only where this machine has it mounted.
    Raises `OSError` where something could not be removed, and `ValueError` for an invalid id.
    """
    if not is_id(cluster_id, "cl"):
        message = f"{cluster_id!r} is not a cluster id"
        raise ValueError(message)
    settings = config().cell
    with suppress(FileNotFoundError):
        shutil.rmtree(settings.dfs / cluster_id)
    remove_below(settings.bucket, cluster_id)
