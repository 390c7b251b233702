"""Removing objects of a cell from Python, in a folder or in S3."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from brokers.locations import object_location

__all__ = ["remove_below"]


def remove_below(location: str, folder: str) -> None:
    """Removes a folder of a bucket, be it a folder or in S3. Repeating it changes nothing.

    Raises `OSError` where some of it could not be removed.
    """
    place = object_location(location)
    if isinstance(place, Path):
        with suppress(FileNotFoundError):
            shutil.rmtree(place / folder)
        return
    # Its libraries take half a second to import, which a process without S3 need not spend.
    from brokers.s3 import S3Objects  # noqa: PLC0415

    S3Objects(place).remove(f"{folder}/")
