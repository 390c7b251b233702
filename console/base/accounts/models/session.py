"""Where people are signed in."""

from __future__ import annotations

from functools import partial

from django.conf import settings
from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id

USER_AGENT_CHARS_MAX = 200


class UserSession(models.Model):
    """A session of the console. Without its row Django's own session lets nobody in.

    Django's table knows neither whose a session is nor from where it is used.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "ses"), editable=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="sessions"
    )
    # Of Django's session; another one after each change of password.
    session_key = models.CharField(max_length=40, unique=True)
    # Whether a second factor was shown, at the sign-in or since.
    second_factor = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    # These are right to some minutes: they are not written on every request.
    last_seen_at = models.DateTimeField(default=now)
    address = models.CharField(max_length=64)
    user_agent = models.CharField(max_length=USER_AGENT_CHARS_MAX, blank=True)

    class Meta:
        indexes = (models.Index(fields=["user", "-created_at", "-id"], name="session_newest"),)

    def __str__(self) -> str:
        return f"{self.pk} of {self.user_id}"
