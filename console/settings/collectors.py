"""Checks what is needed to collect invoices, so that a start names what is wrong. Pure."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from brokers.settings.errors import SettingsError
from console.settings.sections import Billing

# A publishable key (`pk_`) can charge nobody.
API_KEY = re.compile(r"(sk|rk)_\S+")
WEBHOOK_SECRET = re.compile(r"whsec_\S+")


def check_collector(billing: Billing) -> None:
    """Raises `SettingsError` for settings with which nobody could pay as `billing.collector` says.

    What is secret is in no error.
    """
    if billing.collector == "transfer" and not any(map(str.strip, billing.bank_account)):
        message = 'billing.bank_account must be set where billing.collector is "transfer"'
        raise SettingsError(message, "billing.bank_account")
    if billing.stripe_api_key and not API_KEY.fullmatch(billing.stripe_api_key):
        message = (
            "billing.stripe_api_key is (hidden), want a secret key that begins with sk_ or rk_"
        )
        raise SettingsError(message, "billing.stripe_api_key")
    secret = billing.stripe_webhook_secret
    if secret and not WEBHOOK_SECRET.fullmatch(secret):
        message = "billing.stripe_webhook_secret is (hidden), want a secret that begins with whsec_"
        raise SettingsError(message, "billing.stripe_webhook_secret")
    base = urlsplit(billing.stripe_api_base)
    if billing.stripe_api_base and (base.scheme not in {"http", "https"} or not base.hostname):
        message = f"billing.stripe_api_base is {billing.stripe_api_base!r}, want a web address"
        raise SettingsError(message, "billing.stripe_api_base")


def missing_of_collector(billing: Billing) -> dict[str, bool]:
    """What production must set for `billing.collector`: the text → whether it is missing."""
    by_stripe = billing.collector == "stripe"
    base = billing.stripe_api_base
    return {
        "billing.stripe_api_key must be set": by_stripe and not billing.stripe_api_key,
        "billing.stripe_webhook_secret must be set": by_stripe
        and not billing.stripe_webhook_secret,
        "billing.stripe_api_base must be an https address": bool(base)
        and urlsplit(base).scheme != "https",
    }
