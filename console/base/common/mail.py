"""The mail backend of local mode, in place of an SMTP server: one .eml file a mail in a folder."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from console.base.common import clock
from console.base.common.conf import config
from console.base.common.ids import random_text


class FolderBackend(BaseEmailBackend):
    """Writes mails to the folder in which the console's mail viewer and the tests read them."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """Writes each mail under a name that sorts by time; returns how many there were."""
        folder = config().mail.folder
        folder.mkdir(parents=True, exist_ok=True)
        for message in email_messages:
            name = f"{clock.now():%Y%m%dT%H%M%S.%fZ}-{random_text(6)}"
            draft = folder / f".{name}.part"
            draft.write_bytes(message.message().as_bytes())
            # Renamed when complete, so that a reader never sees half a mail.
            draft.rename(folder / f"{name}.eml")
        return len(email_messages)
