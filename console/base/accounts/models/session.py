"""Sessions of people in the console."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

USER_AGENT_CHARS_MAX = 200


class UserSession(models.Model):
    """A session of the console. Django's own session authenticates nobody without this row.

    Django's table holds neither the user of a session nor where it is used from.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "ses"), editable=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sessions"
    )
    # The key of Django's session. It changes with each change of password.
    session_key = models.CharField(max_length=40, unique=True)
    # Whether the person showed a second factor, at the sign-in or since.
    second_factor = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    # These are accurate to five minutes, because they are not written on every request.
    last_seen_at = models.DateTimeField(default=now)
    address = models.CharField(max_length=64)
    user_agent = models.CharField(max_length=USER_AGENT_CHARS_MAX, blank=True)

    class Meta:
        indexes = (models.Index(fields=["user", "-created_at", "-id"], name="session_newest"),)

    def __str__(self) -> str:
        return f"{self.pk} of {self.user_id}"
