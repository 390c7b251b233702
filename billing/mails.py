"""Sending a mail about money, so that mailboxes recognize a repeated one."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMessage

from console.base.common.conf import config


def send_mail(*, subject: str, text: str, to: Sequence[str], key: str) -> None:
    """Sends a mail. Mails with the same `key` have the same Message-ID, so that a mailbox shows a
    repeated one once.

    Raises `OSError` where the mail server cannot be reached or refuses it.
    """
    domain = config().web.public_url.split("://")[-1].split("/")[0].split(":")[0]
    headers = {"Message-ID": f"<{key}@{domain}>"}
    EmailMessage(subject, text, to=list(to), headers=headers).send()
