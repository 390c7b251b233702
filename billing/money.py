"""Money: whole minor units (cents) of a currency. Pure; no floating point anywhere.

Prices are exact decimals; what they make of a quantity is an exact fraction; it becomes money in
one place, `round_half_up`.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
# Decimal places of a unit price, as in its column NUMERIC(38,18).
PRICE_PLACES = 18
PRICE_DIGITS = 38
# The greatest amount that a person enters: a thousand million dollars. More is a typing error.
ENTERED_MINOR_MAX = 10**11
_AMOUNT = re.compile(r"([0-9]{1,30})(?:\.([0-9]{1,30}))?")


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency by ISO 4217: its code, its decimal places, and the sign that people read."""

    code: str
    places: int
    sign: str

    @property
    def minor_units(self) -> int:
        """The number of minor units in one unit of the currency, such as 100."""
        return int(10**self.places)


CURRENCIES = {
    currency.code: currency
    for currency in (Currency("USD", 2, "$"), Currency("EUR", 2, "€"), Currency("JPY", 0, "¥"))
}


def round_half_up(numerator: int, denominator: int) -> int:
    """The whole number nearest to a fraction; of two equally near ones the greater.

    `denominator` is positive. -5/2 gives -2: half up, not half away from zero.
    """
    if denominator <= 0:
        message = "a denominator is positive"
        raise ValueError(message)
    return (2 * numerator + denominator) // (2 * denominator)


def scaled_price(price: Decimal) -> int:
    """A unit price times 10^18, exactly. Raises `ValueError` if it has more decimal places."""
    sign, digits, exponent = price.as_tuple()
    if not isinstance(exponent, int) or sign:
        message = f"{price} is no price"
        raise ValueError(message)
    number = int("".join(map(str, digits)) or "0")
    shift = exponent + PRICE_PLACES
    if shift >= 0:
        return int(number * 10**shift)
    if number % 10**-shift:
        message = f"{price} has more than {PRICE_PLACES} decimal places"
        raise ValueError(message)
    return int(number // 10**-shift)


def share_of(amount_minor: int, percent: Decimal) -> int:
    """A percentage of an amount, in whole minor units, rounded half up. Taxes are made by it."""
    return round_half_up(amount_minor * scaled_price(percent), 100 * 10**PRICE_PLACES)


def allocate_amount(amount_minor: int, weights: Mapping[Key, int]) -> dict[Key, int]:
    """Splits an amount by weight into whole shares with exactly its sum (largest remainder method).

    At equal remainders the greater weight comes first, then the key. Without any weight there is
    nobody to give the amount to, and the result is empty.
    """
    total = sum(weights.values())
    if not total:
        return {}
    shares, remainders = {}, {}
    for key, weight in weights.items():
        shares[key], remainders[key] = divmod(amount_minor * weight, total)
    rest = amount_minor - sum(shares.values())
    if not rest:
        return shares

    # Sorting the remainders alone is quick. Weight and key decide only at the last one's equals.
    last = sorted(remainders.values(), reverse=True)[rest - 1]
    above = [key for key, remainder in remainders.items() if remainder > last]
    equal = [key for key, remainder in remainders.items() if remainder == last]
    if len(above) + len(equal) > rest:
        equal.sort(key=lambda key: (-weights[key], str(key)))
    for key in (*above, *equal[: rest - len(above)]):
        shares[key] += 1
    return shares


def plain_amount(amount_minor: int, currency: str) -> str:
    """An amount in major units as `1234.56`, for files."""
    places = CURRENCIES[currency].places
    sign = "-" if amount_minor < 0 else ""
    digits = str(abs(amount_minor)).rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else f"{sign}{digits}"


def minor_amount(text: str, currency: str) -> int:
    """An amount in major units, such as `1234.56`, in minor units: more than 0.

    It is digits with at most one point. Raises `ValueError` for every other text, for more decimal
    places than the currency has, and for more than `ENTERED_MINOR_MAX`.
    """
    match = _AMOUNT.fullmatch(text)
    places = CURRENCIES[currency].places
    whole, part = (match[1], match[2] or "") if match else ("0", "")
    minor = 0 if len(part) > places else int(whole + part.ljust(places, "0"))
    if minor <= 0:
        message = f"{text!r} is no amount of {currency} such as {plain_amount(1250, currency)}"
        raise ValueError(message)
    if minor > ENTERED_MINOR_MAX:
        most = readable_amount(ENTERED_MINOR_MAX, currency)
        message = f"{text} is too much: at most {most} is entered at once"
        raise ValueError(message)
    return minor


def readable_amount(amount_minor: int, currency: str) -> str:
    """An amount in major units as `$1,234.56`; a negative one has a minus sign in front."""
    whole, _, part = plain_amount(abs(amount_minor), currency).partition(".")
    text = f"{CURRENCIES[currency].sign}{int(whole):,}{'.' if part else ''}{part}"
    return f"\N{MINUS SIGN}{text}" if amount_minor < 0 else text


def price_text(price: Decimal) -> str:
    """A unit price without needless zeros, with two decimal places at least: `0.04`, `0.0005`."""
    text = f"{price:f}"
    whole, _, part = text.partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"
