"""Sending mails: outside of transactions, and into a folder in local mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ParamSpec

from celery import Task, shared_task
from django.core.mail import EmailMessage
from django.core.mail.backends import smtp
from django.core.mail.backends.base import BaseEmailBackend
from typing_extensions import override

from console.base.common import clock
from console.base.common.away import Answering
from console.base.common.conf import config
from console.base.common.ids import random_text
from console.base.common.transactions import outside_transaction

# What tasks wait for, as messages name it.
SERVER = "the mail server"
# A task that sends a mail is repeated for some minutes while the mail server is away. Redis would
# give a task that waits for longer than that to a second worker.
RETRY_S_MAX = 60
RETRIES_MAX = 12
Parameters = ParamSpec("Parameters")
_server_answers = Answering(
    "mail",
    failures=(OSError,),
    refusal=lambda: ConnectionError("the mail server hung a moment ago"),
)


def mail_task(name: str) -> Callable[[Callable[Parameters, None]], Task[Parameters, None]]:
    """Declares a task that sends a mail, which is repeated after an `OSError`."""
    return shared_task(
        name=name,
        autoretry_for=(OSError,),
        retry_backoff=True,
        retry_backoff_max=RETRY_S_MAX,
        max_retries=RETRIES_MAX,
    )


class SmtpBackend(smtp.EmailBackend):
    """Django's, outside of the task's transaction, and not where the server hung a moment ago."""

    @override
    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Sends mails; returns how many. Raises `OSError`."""
        with outside_transaction(SERVER), _server_answers.asking():
            return super().send_messages(email_messages)


class FolderBackend(BaseEmailBackend):
    """The backend of local mode, in place of an SMTP server: one .eml file a mail in a folder."""

    @override
    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Writes each mail under a name that sorts by time; returns how many there were.

        The console's mail viewer and the tests read them there.
        """
        with outside_transaction(SERVER):
            folder = config().mail.folder
            folder.mkdir(parents=True, exist_ok=True)
            for message in email_messages:
                name = f"{clock.now():%Y%m%dT%H%M%S.%fZ}-{random_text(6)}"
                draft = folder / f".{name}.part"
                draft.write_bytes(message.message().as_bytes())
                # Renamed when complete, so that a reader never sees half a mail.
                draft.rename(folder / f"{name}.eml")
        return len(email_messages)
