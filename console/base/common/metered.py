"""Asks whether all usage of a cluster is recorded, before the data that it is derived from goes.

The packages that meter and those that delete data do not import each other. A meter registers its
check in its `AppConfig.ready`; whoever deletes a cluster's data calls `is_metered` first.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Protocol

from django.db import transaction

logger = logging.getLogger(__name__)


class Check(Protocol):
    """Returns whether all usage of a cluster up to a moment is recorded outside of its cell."""

    def __call__(self, *, cluster_id: str, until: datetime) -> bool:
        """May read the database, in the caller's tenancy scope."""


_checks: dict[str, Check] = {}


def register_meter(name: str, check: Check) -> None:
    """Registers a meter's check, in place of an earlier one of that name."""
    _checks[name] = check


def is_metered(*, cluster_id: str, until: datetime) -> bool:
    """Returns whether every registered meter has recorded all usage of a cluster up to a moment.

    A check that raises counts as no: what is not known to be recorded must not be deleted.
    """
    return all(_has_all(name, check, cluster_id, until) for name, check in _checks.items())


def _has_all(name: str, check: Check, cluster_id: str, until: datetime) -> bool:
    try:
        # A savepoint, so that a failed query does not break the caller's transaction.
        with transaction.atomic():
            return check(cluster_id=cluster_id, until=until)
    except Exception:
        logger.exception("metered.unknown", extra={"meter": name, "cluster": cluster_id})
        return False
