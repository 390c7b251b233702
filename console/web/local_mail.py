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
    """The newest mails first. A folder that is not there yet has none."""
    files = sorted(folder.glob("*.eml"), reverse=True)[:MAILS_MAX]
    return [_read(file) for file in files]


def _read(file: Path) -> LocalMail:
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
