"""Reads the mail folder of local mode."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path

MAILS_MAX = 100


@dataclass(frozen=True, slots=True)
class LocalMail:
    """One mail: the name of its file, and what is in it."""

    id: str
    to: str
    subject: str
    sent_at: datetime
    text: str


def newest_mails(folder: Path) -> list[LocalMail]:
    """Returns the newest mails, newest first; none where the folder does not exist yet."""
    files = sorted(folder.glob("*.eml"), reverse=True)[:MAILS_MAX]
    return [_parse_mail(file) for file in files]


def _parse_mail(file: Path) -> LocalMail:
    message: EmailMessage = message_from_bytes(file.read_bytes(), policy=policy.default)
    body = message.get_body(("plain", "html"))
    date = message["Date"]
    return LocalMail(
        id=file.stem,
        to=str(message["To"] or ""),
        subject=str(message["Subject"] or ""),
        sent_at=parsedate_to_datetime(str(date)) if date else datetime.fromtimestamp(0, UTC),
        text=str(body.get_content()) if body is not None else "",
    )
