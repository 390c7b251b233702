"""Keeps mails in memory, as Django's tests do, and counts as something that is waited for."""

from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.locmem import EmailBackend
from typing_extensions import override

from console.base.common.transactions import outside_transaction


class WaitedForBackend(EmailBackend):
    """Django's, outside of the sender's transaction as those of the service."""

    @override
    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        """Adds the mails to `django.core.mail.outbox`; returns how many."""
        with outside_transaction("the mail server"):
            return super().send_messages(messages)
