"""Registers, for each kind of announced deletion, the function that says whether it was made."""

from __future__ import annotations

from provisioning.administration.services import (
    acls,
    credentials,
    deleted_topics,
    groups,
    quotas,
    running_groups,
)
from provisioning.administration.services.announcing import register_check


def register_checks() -> None:
    """Registers the checks of every kind with `announcing`; the application calls it once."""
    register_check(acls.DELETED, acls.are_gone)
    register_check(quotas.REMOVED, quotas.is_gone)
    register_check(deleted_topics.PURGED, deleted_topics.is_gone)
    register_check(credentials.DELETED, credentials.is_ended)
    register_check(running_groups.DELETED, groups.is_gone)
