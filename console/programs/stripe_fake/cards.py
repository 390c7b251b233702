"""Stripe's test cards: what their issuers answer. Pure.

The numbers and their meanings are those of Stripe's page on testing.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

# `decline_code` → the error's `code`, where that is not `card_declined`.
_CODES = {
    "expired_card": "expired_card",
    "incorrect_cvc": "incorrect_cvc",
    "processing_error": "processing_error",
    "authentication_required": "authentication_required",
}
_MESSAGES = {
    "insufficient_funds": "Your card has insufficient funds.",
    "expired_card": "Your card has expired.",
    "incorrect_cvc": "Your card's security code is incorrect.",
    "processing_error": "An error occurred while processing your card. Try again in a little bit.",
    "authentication_required": "Your card was declined. This transaction requires authentication.",
}
DECLINED = "Your card was declined."


@dataclass(frozen=True, slots=True)
class Card:
    """How the issuer of a card answers.

    `declines_setup`, `declines`: the decline code when the card is saved, and when it is charged.
    `authentication`: `never`; `unless_set_up` (an off-session charge needs none once the card was
    set up with it); `always`. `disputed`: the reason of the dispute that follows a charge.
    `refunds`: what becomes of one: `succeed`, `pend` (it succeeds a moment later) or `fail`.
    """

    brand: str
    country: str = "US"
    funding: str = "credit"
    declines_setup: str | None = None
    declines: str | None = None
    authentication: str = "never"
    disputed: str | None = None
    refunds: str = "succeed"


def _declined(code: str) -> Card:
    return Card("visa", declines_setup=code, declines=code)


CARDS: dict[str, Card] = {
    "4242424242424242": Card("visa"),
    "4000056655665556": Card("visa", funding="debit"),
    "5555555555554444": Card("mastercard"),
    "378282246310005": Card("amex"),
    "4000002760000016": Card("visa", country="DE"),
    "4000000000000002": _declined("generic_decline"),
    "4000000000009995": _declined("insufficient_funds"),
    "4000000000009987": _declined("lost_card"),
    "4000000000009979": _declined("stolen_card"),
    "4000000000000069": _declined("expired_card"),
    "4000000000000127": _declined("incorrect_cvc"),
    "4000000000000119": _declined("processing_error"),
    "4000000000000341": Card("visa", declines="generic_decline"),
    "4000002500003155": Card("visa", country="DE", authentication="unless_set_up"),
    "4000002760003184": Card("visa", country="DE", authentication="always"),
    "4000008260003178": Card(
        "visa", country="GB", authentication="always", declines="insufficient_funds"
    ),
    "4000000000000259": Card("visa", disputed="fraudulent"),
    "4000000000002685": Card("visa", disputed="product_not_received"),
    "4000000000001976": Card("visa", disputed="warning"),
    "4000000000007726": Card("visa", refunds="pend"),
    "4000000000005126": Card("visa", refunds="fail"),
}

# PaymentMethods that Stripe knows in test mode: attaching one makes a card of its own.
KNOWN_METHODS = {
    "pm_card_visa": "4242424242424242",
    "pm_card_visa_debit": "4000056655665556",
    "pm_card_mastercard": "5555555555554444",
    "pm_card_amex": "378282246310005",
    "pm_card_de": "4000002760000016",
    "pm_card_visa_chargeDeclined": "4000000000000002",
    "pm_card_visa_chargeDeclinedInsufficientFunds": "4000000000009995",
    "pm_card_chargeCustomerFail": "4000000000000341",
    "pm_card_authenticationRequiredOnSetup": "4000002500003155",
    "pm_card_authenticationRequired": "4000002760003184",
    "pm_card_createDispute": "4000000000000259",
    "pm_card_createDisputeProductNotReceived": "4000000000002685",
    "pm_card_createDisputeInquiry": "4000000000001976",
    "pm_card_pendingRefund": "4000000000007726",
    "pm_card_refundFail": "4000000000005126",
}


def card_of(number: str) -> Card | None:
    """Returns the test card with a number; None where no test card has it."""
    return CARDS.get(re.sub(r"\D", "", number))


def fingerprint(number: str) -> str:
    """Returns the 16 characters that one number always has, whoever saves it."""
    digest = hashlib.sha256(re.sub(r"\D", "", number).encode()).hexdigest()
    return digest[:16]


def error_code(decline_code: str) -> str:
    """Returns the error's `code` for a decline code."""
    return _CODES.get(decline_code, "card_declined")


def decline_message(decline_code: str) -> str:
    """Returns the sentence that a cardholder may read."""
    return _MESSAGES.get(decline_code, DECLINED)
