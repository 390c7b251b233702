"""The values that columns of incidents may have."""

from __future__ import annotations

from django.db import models


class IncidentKind(models.TextChoices):
    """Which fault an incident is about."""

    BROKERS_CRASHING = "brokers_crashing", "Brokers crash again and again"
    CELL_UNREACHABLE = "cell_unreachable", "A cell does not answer"
    BROKERS_UNHEALTHY = "brokers_unhealthy", "Too many brokers are unhealthy"
    KEEPER_SILENT = "keeper_silent", "A cell's keeper says nothing"
    MACHINE_LOST = "machine_lost", "A machine that brokers ran on is lost"
    PLATFORM_UNREACHABLE = "platform_unreachable", "What runs brokers cannot be asked"
    METADATA_FULL = "metadata_full", "A cell's metadata store is nearly full"
    DAMAGED_BATCH = "damaged_batch", "A topic has a batch that cannot be decoded"
    OPERATION_STUCK = "operation_stuck", "An operation does not end"
    TASKS_DELAYED = "tasks_delayed", "Background work does not run"
    USAGE_INCOMPLETE = "usage_incomplete", "Usage of an hour is missing"
    INVOICES_MISSING = "invoices_missing", "Invoices of a month could not be issued"
    MONEY_DIFFERS = "money_differs", "Money does not reconcile"
    USAGE_DIFFERS = "usage_differs", "Usage does not reconcile"


class IncidentState(models.TextChoices):
    """Whether an incident goes on. A suspected one is shown to staff only."""

    SUSPECTED = "suspected", "Suspected"
    OPEN = "open", "Open"
    CLOSED = "closed", "Closed"


# What only those who run the service see: organizations have nothing to do with it.
OF_STAFF = (
    IncidentKind.INVOICES_MISSING.value,
    IncidentKind.MONEY_DIFFERS.value,
    IncidentKind.USAGE_DIFFERS.value,
)
SHOWN_STATES = (IncidentState.OPEN.value, IncidentState.CLOSED.value)
