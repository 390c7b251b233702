"""The page of a cardholder's bank: the payment is approved, or refused."""

from __future__ import annotations

from html import escape

from console.programs.stripe_fake.errors import CardDeclined, Json
from console.programs.stripe_fake.objects import payment_intents, setup_intents
from console.programs.stripe_fake.pages.answers import (
    PageAnswer,
    gone,
    sent_to,
    shown,
    with_query,
)
from console.programs.stripe_fake.sandbox import Sandbox


def answer_authentication(
    sandbox: Sandbox, method: str, parts: list[str], form: dict[str, str]
) -> PageAnswer:
    """Answers `/authenticate/<intent>/<secret>`; the form's `outcome` is `succeed` or `fail`."""
    intent_id, secret = parts
    kind = "payment_intent" if intent_id.startswith("pi_") else "setup_intent"
    intent = sandbox.store.load(kind, intent_id)
    if intent is None or intent["client_secret"] != f"{intent_id}_secret_{secret}":
        return gone("There is nothing to authenticate.")
    action = intent["next_action"]
    if intent["status"] != "requires_action" or action["type"] != "redirect_to_url":
        return gone("This was authenticated already, or ended in another way.")
    if method != "POST":
        return shown("Your bank asks you", _content(intent))
    return_url = action["redirect_to_url"]["return_url"]
    finish = (
        payment_intents.finish_authentication
        if kind == "payment_intent"
        else setup_intents.finish_authentication
    )
    try:
        intent = finish(sandbox, intent, succeeded=form.get("outcome") == "succeed")
        status = "succeeded" if intent["status"] == "succeeded" else "pending"
    except CardDeclined:
        status = "failed"
    query = {
        kind: intent_id,
        f"{kind}_client_secret": intent["client_secret"],
        "redirect_status": status,
    }
    return sent_to(with_query(return_url, query))


def _content(intent: Json) -> str:
    if intent["object"] == "payment_intent":
        amount = f"{intent['amount']} {intent['currency'].upper()} in minor units"
        question = f"Do you approve a payment of {amount}?"
    else:
        question = "Do you approve that this card is saved for later payments?"
    buttons = (
        '<button type="submit" name="outcome" value="succeed">Approve</button> '
        '<button class="plain" type="submit" name="outcome" value="fail">Refuse</button>'
    )
    return f'<p>{escape(question)}</p><form method="post">{buttons}</form>'
