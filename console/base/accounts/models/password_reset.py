"""Passwords that somebody asked to set anew."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class PasswordReset(models.Model):
    """A request for a mail, for whatever address was given. Gone once a worker has looked at it.

    Written for unknown addresses too: the request does the same for each, and takes as long.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "pr"), editable=False
    )
    email = models.EmailField(max_length=254)
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.pk
