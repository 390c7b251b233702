"""The data of purged clusters: its folders on the shared file system and in the object store."""

from __future__ import annotations

import shutil
from contextlib import suppress

from brokers.objects import remove_below
from console.base.common.conf import config
from console.base.common.ids import is_id


def remove_storage(cluster_id: str) -> None:
    """Removes what a cluster stored. Repeating it changes nothing.

    Of the shared file system only what this machine has mounted.
    Raises `OSError` where some of it could not be removed: then it is not gone.
    """
    if not is_id(cluster_id, "cl"):
        message = f"{cluster_id!r} is no cluster's id"
        raise ValueError(message)
    settings = config().cell
    with suppress(FileNotFoundError):
        shutil.rmtree(settings.dfs / cluster_id)
    remove_below(settings.bucket, cluster_id)
