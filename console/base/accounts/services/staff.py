"""Who runs the service: people with `is_staff`. Only who may run `manage.py` changes it."""

from __future__ import annotations

import logging

from console.base.accounts.models import User
from console.base.accounts.services.people import audit_person, notify_person
from console.base.accounts.services.sessions import end_sessions

logger = logging.getLogger(__name__)


def set_staff(*, user: User, staff: bool, reason: str) -> bool:
    """Makes a person staff, or staff no more; returns whether that changed anything.

    Their sessions end, so that nobody who has one open becomes staff with it. It is in the audit
    log of each organization of theirs, and a mail informs them.
    """
    locked = User.objects.select_for_update().get(pk=user.pk)
    if locked.is_staff == staff:
        return False
    locked.is_staff = staff
    locked.save(update_fields=["is_staff"])
    end_sessions(user=locked, but_for=None, address="")
    action = "person.make_staff" if staff else "person.end_staff"
    audit_person(user=locked, action=action, address="", detail={"reason": reason})
    logger.warning(action, extra={"user": locked.pk, "reason": reason})
    notify_person(user=locked, about="made_staff" if staff else "staff_no_more")
    return True
