"""The amounts that can be charged by card, in each currency. Pure."""

from __future__ import annotations

from console.programs.stripe_fake.errors import ApiError, ParameterError

# Stripe's minimum charge in minor units; other currencies have that of the US dollar.
MINIMUM = {
    "aed": 200, "aud": 50, "bgn": 100, "brl": 50, "cad": 50, "chf": 50, "czk": 1500, "dkk": 250,
    "eur": 50, "gbp": 30, "hkd": 400, "huf": 17_500, "inr": 50, "jpy": 50, "mxn": 1000,
    "myr": 200, "nok": 300, "nzd": 50, "pln": 200, "ron": 200, "sek": 300, "sgd": 50, "thb": 1000,
    "usd": 50,
}  # fmt: skip
MAXIMUM = 99_999_999


def check_amount(amount: int, currency: str) -> None:
    """Raises `ApiError` where an amount in minor units is too small or too large."""
    code = currency.lower()
    if len(code) != 3 or not code.isalpha():
        raise ParameterError(f"Invalid currency: {code}", param="currency")
    if amount < 1:
        raise ParameterError(
            "This value must be greater than or equal to 1.",
            code="parameter_invalid_integer",
            param="amount",
        )
    least = MINIMUM.get(code, MINIMUM["usd"])
    if amount < least:
        raise ApiError(
            400,
            f"Amount must be at least {least} {code} in minor units.",
            code="amount_too_small",
            param="amount",
        )
    if amount > MAXIMUM:
        raise ApiError(
            400,
            f"Amount must be no more than {MAXIMUM} {code} in minor units.",
            code="amount_too_large",
            param="amount",
        )
