"""An invoice as PDF. With the same fonts, the same content gives the same bytes."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from datetime import datetime
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from django.template import Context, Engine, Template

from billing.choices import InvoiceKind, LineKind, TaxCategory
from billing.errors import DocumentRefersOutside
from billing.money import CURRENCIES, readable_amount
from billing.periods import last_day, parse_month

FOLDER = Path(__file__).parent
# Decimal places of quantities, which are rounded for reading only: amounts are computed from the
# exact quantities.
DECIMALS = 3


def render_pdf(content: dict[str, Any], terms: dict[str, Any] | None = None) -> bytes:
    """The PDF of a document that `billing.content.invoice_content` made. Takes about a second.

    `terms`: how it is to be paid, from `billing.receivables.terms`. They are no part of the content
    that is hashed: the invoice is the same whoever collects it.

    Raises `DocumentRefersOutside` where the page or its style names anything to be fetched.
    """
    # Without an identifier of our own WeasyPrint takes a random one, and bytes would differ.
    printed = content if terms is None else {"content": content, "terms": terms}
    identifier = hashlib.sha256(_canonical_json(printed)).digest()[:16]
    style = (FOLDER / "invoice.css").read_text(encoding="utf-8")
    return draw_pdf(render_html(content, terms), style, identifier=identifier)


def draw_pdf(page: str, style: str, *, identifier: bytes) -> bytes:
    """The PDF of a page of HTML in a style of CSS.

    Nothing is fetched for it, be it from a file or the network. Raises `DocumentRefersOutside`.
    """
    # Imported here because it loads Pango, which a process that renders nothing does not need.
    from weasyprint import CSS, HTML  # noqa: PLC0415
    from weasyprint.text.fonts import FontConfiguration  # noqa: PLC0415
    from weasyprint.urls import FatalURLFetchingError, URLFetcher  # noqa: PLC0415

    refused: list[str] = []

    class RefusingFetcher(URLFetcher):  # type: ignore[misc] # WeasyPrint has no types
        """Ends the rendering: a name that a customer chose must reach neither file nor network."""

        def fetch(self, url: str, headers: object = None) -> Any:  # noqa: ANN401 (as there)
            refused.append(url)
            message = "nothing is fetched for an invoice"
            raise FatalURLFetchingError(message)

    fetcher, fonts = RefusingFetcher(fail_on_errors=True), FontConfiguration()
    pdf = b""
    # That error is no `Exception`, and would end the worker. Within an SVG it is only logged.
    with suppress(FatalURLFetchingError):
        sheet = CSS(string=style, font_config=fonts, url_fetcher=fetcher)
        pdf = HTML(string=page, url_fetcher=fetcher).write_pdf(
            stylesheets=[sheet],
            font_config=fonts,
            pdf_identifier=identifier,
            pdf_variant="pdf/a-3u",
        )
    if refused:
        raise DocumentRefersOutside(
            f"An invoice refers to nothing outside of it: {refused[0]:.200}"
        )
    return bytes(pdf)


def render_html(content: dict[str, Any], terms: dict[str, Any] | None = None) -> str:
    """The HTML page that the PDF is made from."""
    return _load_template().render(Context({**_page_texts(content), "terms": terms}))


def content_sha256(content: dict[str, Any]) -> str:
    """The hash that is printed on the invoice: that of the evidence pack's `invoice.json`, without
    the ids of roll-ups.

    Roll-ups that a restored database makes anew have other ids, although the
    invoice that follows from them is the same.
    """
    hashed = {name: value for name, value in content.items() if name != "usage_basis"}
    return hashlib.sha256(_canonical_json(hashed)).hexdigest()


@cache
def _load_template() -> Template:
    return Engine(autoescape=True).from_string(
        (FOLDER / "invoice.html").read_text(encoding="utf-8")
    )


def _canonical_json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _page_texts(content: dict[str, Any]) -> dict[str, Any]:
    """All texts that the template places on the page."""
    currency = content["currency"]
    month = parse_month(content["month"])
    issued_at = datetime.fromisoformat(content["issued_at"])
    tax = content["tax"]
    lines = content["lines"]
    return {
        "content": content,
        "title": str(InvoiceKind(content["kind"]).label),
        "is_credit_note": content["kind"] == InvoiceKind.CREDIT_NOTE,
        "issued_on": f"{issued_at:%-d %B %Y}",
        "issued_at": content["issued_at"],
        "period": f"{month:%-d} – {last_day(month):%-d %B %Y}",
        "lines": [_line_texts(line, currency) for line in lines],
        "subtotal": readable_amount(content["subtotal_minor"], currency),
        "tax": readable_amount(content["tax_minor"], currency),
        "tax_percent": tax["percent"],
        "tax_category": str(TaxCategory(tax["category"]).label),
        "tax_reason": tax["reason"],
        "total": readable_amount(content["total_minor"], currency),
        "sha256": content_sha256(content),
    }


def _line_texts(line: dict[str, Any], currency: str) -> dict[str, Any]:
    shown = {
        "description": line["description"],
        "cluster": line["cluster"] or line["cluster_id"],
        "amount": readable_amount(line["amount_minor"], currency),
        "is_usage": line["kind"] == LineKind.USAGE,
    }
    if line["kind"] == LineKind.USAGE:
        size, unit = line["price_unit_size"], line["price_unit"]
        billed = line["quantity"] - line["free_quantity"]
        shown |= {
            "unit": unit,
            "quantity": _quantity_text(line["quantity"], size),
            "free": _quantity_text(line["free_quantity"], size),
            "billed": _quantity_text(billed, size),
            "price": f"{CURRENCIES[currency].sign}{line['unit_price']}",
        }
    return shown


def _quantity_text(base: int, size: int) -> str:
    """A quantity in the unit of its price, rounded for reading. `base` is in base units, of which
    `size` are one unit."""
    exact = Fraction(base, size)
    if 0 < exact < Fraction(1, 10**DECIMALS):
        return f"< {1 / 10**DECIMALS:.{DECIMALS}f}"
    rounded = round(exact * 10**DECIMALS)
    whole, part = divmod(rounded, 10**DECIMALS)
    return f"{whole:,}.{part:0{DECIMALS}d}"
