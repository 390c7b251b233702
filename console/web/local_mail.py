"""Reads the mail folder of local mode, for a browser that has shown the token of the start."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from console.settings.home import derive_mail_token
from console.web.errors import MailTokenRequired

MAILS_MAX = 100
COOKIE = "freshet_mail"
COOKIE_AGE = timedelta(days=180)


@dataclass(frozen=True, slots=True)
class LocalMail:
    """One mail: the name of its file, and what is in it."""

    id: str
    to: str
    subject: str
    sent_at: datetime
    text: str


def check_mail_token(token: str) -> None:
    """Raises `MailTokenRequired` unless it is the token that the service's start printed."""
    if not hmac.compare_digest(
        token.encode(), derive_mail_token(str(settings.SECRET_KEY)).encode()
    ):
        raise MailTokenRequired


def check_mail_cookie(request: HttpRequest) -> None:
    """Raises `MailTokenRequired` unless the browser has shown the token before."""
    check_mail_token(request.COOKIES.get(COOKIE, ""))


def remember_mail_token(response: HttpResponseBase, token: str) -> None:
    """Sets the cookie on the answer to a browser that showed the right token."""
    response.set_cookie(
        COOKIE,
        token,
        max_age=COOKIE_AGE,
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
        samesite="Strict",
    )


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
