"""Checks what every invoice needs, so that a start names what is wrong and no month does. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from brokers.settings.errors import SettingsError
from console.settings.sections import Billing

COUNTRY = re.compile(r"[A-Za-z]{2}")
# It becomes part of keys in the store of documents, and of the 24 characters of a series' name.
PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,15}")


def parse_rates(texts: Iterable[str]) -> dict[str, Decimal]:
    """Country → rate in percent, from texts such as `DE=19`. Raises `ValueError`."""
    rates: dict[str, Decimal] = {}
    for text in texts:
        name, _, percent = text.partition("=")
        country = name.strip().upper()
        try:
            rate = Decimal(percent.strip())
        except InvalidOperation:
            rate = Decimal("NaN")
        if not COUNTRY.fullmatch(country) or not rate.is_finite() or not 0 <= rate <= 100:
            message = f"billing.vat_rates: {text!r} is not like DE=19"
            raise ValueError(message)
        if country in rates:
            message = f"billing.vat_rates: {country} has two rates"
            raise ValueError(message)
        rates[country] = rate
    return rates


def check_billing(billing: Billing) -> None:
    """Raises `SettingsError` for settings of `[billing]` with which no invoice could be issued."""
    if billing.invoice_prefix and not PREFIX.fullmatch(billing.invoice_prefix):
        message = (
            f"billing.invoice_prefix is {billing.invoice_prefix!r}, want at most 16 letters, digits"
            " and hyphens"
        )
        raise SettingsError(message, "billing.invoice_prefix")
    country = billing.seller_country
    if country and not COUNTRY.fullmatch(country):
        message = f"billing.seller_country is {country!r}, want a code of ISO 3166-1 such as DE"
        raise SettingsError(message, "billing.seller_country")
    try:
        rates = parse_rates(billing.vat_rates)
    except ValueError as error:
        raise SettingsError(str(error), "billing.vat_rates") from error
    if not billing.seller_vat_id:
        return
    # Who is registered for VAT has to name itself, and charges it in its own country at least.
    if not country:
        message = "billing.seller_country must be set where billing.seller_vat_id is"
        raise SettingsError(message, "billing.seller_country")
    if not billing.seller_address:
        message = "billing.seller_address must be set where billing.seller_vat_id is"
        raise SettingsError(message, "billing.seller_address")
    if country.upper() not in rates:
        message = (
            f"billing.vat_rates must name the rate of the seller's country, such as "
            f"{country.upper()}=19"
        )
        raise SettingsError(message, "billing.vat_rates")
