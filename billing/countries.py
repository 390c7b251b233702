"""Countries, and the VAT ids that their businesses have. Pure.

A VAT id is checked for its form and check digits, by python-stdnum. Whether it was given to
somebody is not asked (VIES).
"""

from __future__ import annotations

import pycountry
from stdnum import get_cc_module
from stdnum.exceptions import ValidationError

MEMBER_STATES = frozenset(
    {
        *("AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU"),
        *("IE", "IT", "LT", "LU", "LV", "MT", "NL", "PL", "PT", "RO", "SE", "SI", "SK"),
    }
)
# Codes by which a country is often meant, and that of ISO 3166-1.
MEANT = {"EL": "GR", "UK": "GB", "XI": "GB"}
# The prefixes of VAT ids where they are not the country's code alone.
PREFIXES = {"GR": ("EL",), "GB": ("GB", "XI"), "MC": ("FR",), "IM": ("GB",)}
# Countries that are treated as another one (Directive 2006/112/EC, article 7).
TREATED_AS = {"MC": "FR", "IM": "GB"}


def is_country(code: str) -> bool:
    """Whether a code is one of ISO 3166-1 alpha-2 that is assigned."""
    return pycountry.countries.get(alpha_2=code) is not None


def country_complaint(code: str) -> str:
    """What is wrong with a country's code; empty where nothing is."""
    if not code or is_country(code):
        return ""
    if code in MEANT:
        return f"Use {MEANT[code]}, the country's code of ISO 3166-1."
    return f"{code} is no country of ISO 3166-1."


def vat_id_complaint(country: str, vat_id: str) -> str:
    """What is wrong with the VAT id of a business in a country; empty where nothing is."""
    if not vat_id:
        return ""
    if not country:
        return "Set the country too: a VAT id is one of a country."
    prefixes = PREFIXES.get(country, (country,))
    if not vat_id.startswith(prefixes):
        return f"A VAT id in {country} begins with {' or '.join(prefixes)}."
    state = TREATED_AS.get(country, country)
    if state not in MEMBER_STATES:
        # Its form changes nothing: what is supplied there is outside the Union.
        return ""
    if not has_check_digits(state, vat_id[2:]):
        return "It is no VAT id: its length or its check digits are wrong."
    return ""


def has_check_digits(state: str, number: str) -> bool:
    """Whether a number without prefix may be a VAT id of a member state.

    Its own letters, such as Austria's U, belong to the number.
    """
    module = get_cc_module(state.lower(), "vat")
    try:
        # Written otherwise it is another text than the number; Romania's may keep its prefix.
        is_bare = not number.startswith(state)
        return module is not None and is_bare and module.validate(number) == number
    except ValidationError:
        return False


def tax_country(code: str) -> str:
    """The country whose rules of VAT hold for a party; empty where the code is none.

    Rows of before codes were checked may have any.
    """
    code = MEANT.get(code, code)
    return TREATED_AS.get(code, code) if is_country(code) else ""


def is_taxed_business(country: str, vat_id: str) -> bool:
    """Whether a VAT id is one that a business in a member state may have."""
    country = MEANT.get(country, country)
    in_union = TREATED_AS.get(country, country) in MEMBER_STATES
    return bool(vat_id) and in_union and not vat_id_complaint(country, vat_id)
