"""Whether usage is recorded for good, so that what it was derived from may go.

Who meters and who removes data do not know each other. A meter registers its check in its
`AppConfig.ready`; whoever removes a cluster's data asks here first.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Protocol

from django.db import transaction

logger = logging.getLogger(__name__)


class Check(Protocol):
    """Tells whether all usage of a cluster up to a moment is recorded outside of its cell."""

    def __call__(self, *, cluster_id: str, until: datetime) -> bool:
        """May read the database, in whatever tenancy scope the caller is."""


_checks: dict[str, Check] = {}


def register_meter(name: str, check: Check) -> None:
    """Adds a meter; another check under the same name is replaced."""
    _checks[name] = check


def is_metered(*, cluster_id: str, until: datetime) -> bool:
    """Whether every registered meter has all usage of a cluster up to a moment.

    A check that fails says no: from not knowing follows nothing.
    """
    return all(_has_all(name, check, cluster_id, until) for name, check in _checks.items())


def _has_all(name: str, check: Check, cluster_id: str, until: datetime) -> bool:
    try:
        # A failed query must not take the caller's transaction with it.
        with transaction.atomic():
            return check(cluster_id=cluster_id, until=until)
    except Exception:
        logger.exception("metered.unknown", extra={"meter": name, "cluster": cluster_id})
        return False
