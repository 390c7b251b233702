"""What a hosted page answers: a page, or another address to go to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from console.programs.stripe_fake.pages.html import page


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """`location`: where the browser goes (status 303)."""

    status: int
    html: str = ""
    location: str = ""


def shown(title: str, content: str, status: int = 200) -> PageAnswer:
    """Returns a page."""
    return PageAnswer(status, page(title, content))


def gone(text: str) -> PageAnswer:
    """Returns the page of an address that does not work, or not any more."""
    return shown("This page does not work any more", f"<p>{text}</p>", 404)


def sent_to(location: str) -> PageAnswer:
    """Sends the browser to an address."""
    return PageAnswer(303, location=location)


def with_query(address: str, values: dict[str, str]) -> str:
    """Returns an address with more parameters in its query."""
    parts = urlsplit(address)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *values.items()])
    return urlunsplit(parts._replace(query=query))
