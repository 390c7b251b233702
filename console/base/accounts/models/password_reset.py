"""Requests for mails to an address that may have an account."""

from __future__ import annotations

from functools import partial

from django.db import models

from console.base.accounts.choices import MailPurpose
from console.base.common.clock import now
from console.base.common.ids import ID_CHARS_MAX, new_id


class PasswordReset(models.Model):
    """A request for a mail that sets a new password, or helps into an account in another way.

    A worker deletes it when it handles it.

    It is written for addresses without an account too, so that the REST request does the same, and
    takes as long, for every address.
    """

    id = models.CharField(
        primary_key=True, max_length=ID_CHARS_MAX, default=partial(new_id, "pr"), editable=False
    )
    email = models.EmailField(max_length=254)
    purpose = models.CharField(
        max_length=16, choices=MailPurpose.choices, default=MailPurpose.RESET.value
    )
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.pk
