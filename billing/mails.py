"""Sending a mail about money, so that a repeated one is known for what it is."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMessage

from console.base.common.conf import config


def send(*, subject: str, text: str, to: Sequence[str], key: str) -> None:
    """Sends a mail. One of the same `key` has the same Message-ID, by which mailboxes know it.

    Raises `OSError` where the mail server cannot be reached or refuses it.
    """
    domain = config().web.public_url.split("://")[-1].split("/")[0].split(":")[0]
    headers = {"Message-ID": f"<{key}@{domain}>"}
    EmailMessage(subject, text, to=list(to), headers=headers).send()
