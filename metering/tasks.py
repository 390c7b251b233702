"""Celery tasks: each calls one service of its name."""

from __future__ import annotations

from celery import shared_task

from metering.services import ingest


@shared_task(name="metering.ingest_usage")
def ingest_usage() -> None:
    """Takes new usage files into the provisional minutes."""
    ingest.ingest_usage()
