"""Saving a card that a customer typed: both Checkout and the portal do it by a setup intent."""

from __future__ import annotations

import re

from console.programs.stripe_fake.cards import card_of
from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.objects import payment_methods, setup_intents
from console.programs.stripe_fake.sandbox import Sandbox


def save_card(sandbox: Sandbox, intent: Json, form: dict[str, str], return_url: str) -> Json:
    """Confirms a setup intent with the card of a form; returns the intent.

    It may then ask the customer to authenticate, after which the browser comes to `return_url`.
    Raises `ApiError` where the number is no test card's, and `CardDeclined`.
    """
    number = re.sub(r"\D", "", form.get("number", ""))
    if card_of(number) is None:
        raise ApiError(402, "Your card number is invalid.", code="invalid_number", param="number")
    expiry = re.fullmatch(r"(0[1-9]|1[0-2])/(\d\d)", form.get("expiry", "12/34").strip())
    if expiry is None:
        raise ApiError(402, "Your card's expiry is invalid.", code="invalid_expiry_month")
    expires = int(expiry.group(1)), 2000 + int(expiry.group(2))
    method = payment_methods.create_card(sandbox, number, expires=expires)
    intent["payment_method"], intent["status"] = method["id"], "requires_confirmation"
    return setup_intents.confirm_setup(sandbox, intent, return_url)


def authentication_address(intent: Json) -> str | None:
    """Returns the address at which the customer must authenticate; None where it need not."""
    action = intent["next_action"]
    return None if action is None else str(action["redirect_to_url"]["url"])
