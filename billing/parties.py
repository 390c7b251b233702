"""Who sells, who buys, and which value added tax follows. Pure.

The rules are those for services that are supplied electronically, as in Directive 2006/112/EC: a
business in another member state owes the tax itself (article 196), a customer without a VAT id is
taxed where it is (article 58), and one outside the Union is outside of its scope (article 59).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from billing.choices import TaxCategory
from billing.countries import MEMBER_STATES, is_taxed_business, tax_country

NOT_REGISTERED = "The seller is not registered for VAT."
REVERSE_CHARGE = "Reverse charge: VAT is owed by the customer (article 196, Directive 2006/112/EC)."
OUTSIDE_UNION = "Not subject to VAT: supplied outside the European Union."


class TaxUnknown(Exception):
    """The seller owes VAT in a country whose rate the settings do not name."""


@dataclass(frozen=True, slots=True)
class Party:
    """One side of an invoice, with what article 226 of the directive requires."""

    name: str
    address: tuple[str, ...] = ()
    # ISO 3166-1 alpha-2; empty: not known.
    country: str = ""
    vat_id: str = ""
    registration: str = ""
    email: str = ""

    def as_json(self) -> dict[str, Any]:
        """The party as JSON, for a column or a file."""
        return {**asdict(self), "address": list(self.address)}


@dataclass(frozen=True, slots=True)
class Tax:
    """The tax of an invoice."""

    category: str
    # A percentage of the taxable amount.
    percent: Decimal
    # Why nothing is charged; empty where something is.
    reason: str = ""

    def as_json(self) -> dict[str, str]:
        """The tax as JSON, for a column or a file."""
        return {"category": self.category, "percent": f"{self.percent}", "reason": self.reason}


def tax_between(seller: Party, customer: Party, rates: Mapping[str, Decimal]) -> Tax:
    """The tax on a sale. `rates` maps countries to their standard rates in percent.

    A customer of unknown country is taxed as one in the seller's country, and one whose VAT id
    cannot be one of its country as one without. Raises `TaxUnknown` where tax is due in a country
    without a rate.
    """
    if not seller.vat_id:
        return Tax(TaxCategory.OUTSIDE_SCOPE.value, Decimal(0), NOT_REGISTERED)
    home = tax_country(seller.country)
    country = tax_country(customer.country) or home
    if country == home:
        return _standard_tax(country, rates)
    if country not in MEMBER_STATES:
        return Tax(TaxCategory.OUTSIDE_SCOPE.value, Decimal(0), OUTSIDE_UNION)
    if is_taxed_business(customer.country, customer.vat_id):
        return Tax(TaxCategory.REVERSE_CHARGE.value, Decimal(0), REVERSE_CHARGE)
    return _standard_tax(country, rates)


def _standard_tax(country: str, rates: Mapping[str, Decimal]) -> Tax:
    if country not in rates:
        message = (
            f"billing.vat_rates names no rate for {country or 'the country of the seller'}."
            " Add it, such as DE=19."
        )
        raise TaxUnknown(message)
    percent = rates[country]
    if percent == 0:
        return Tax(TaxCategory.ZERO.value, percent, "Zero rate.")
    return Tax(TaxCategory.STANDARD.value, percent)
