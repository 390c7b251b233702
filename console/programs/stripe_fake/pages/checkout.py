"""Checkout's page: a card is typed, and the browser goes on to `success_url`."""

from __future__ import annotations

from html import escape

from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.objects.checkout import complete_session
from console.programs.stripe_fake.pages.answers import PageAnswer, gone, sent_to, shown
from console.programs.stripe_fake.pages.html import alert, card_form
from console.programs.stripe_fake.pages.saving import authentication_address, save_card
from console.programs.stripe_fake.sandbox import Sandbox


def answer_checkout(
    sandbox: Sandbox, method: str, parts: list[str], form: dict[str, str]
) -> PageAnswer:
    """Answers `/checkout/<session>` and, after an authentication, `/checkout/<session>/return`."""
    body = sandbox.store.load("checkout.session", parts[0])
    if body is None or body["status"] != "open":
        return gone("The session is complete or has expired.")
    intent = sandbox.load("setup_intent", body["setup_intent"])
    error: ApiError | None = None
    if method == "POST":
        try:
            back = f"{sandbox.base}/checkout/{body['id']}/return"
            intent = save_card(sandbox, intent, form, back)
        except ApiError as raised:
            error = raised
    address = authentication_address(intent)
    if error is None and method == "POST" and address is not None:
        return sent_to(address)
    if intent["status"] == "succeeded":
        return sent_to(complete_session(sandbox, body))
    failure = intent["last_setup_error"] if parts[1:] == ["return"] else None
    text = str(error) if error is not None else failure["message"] if failure else None
    return shown("Save a card", _content(body, text), 402 if text else 200)


def _content(body: Json, error: str | None) -> str:
    form = card_form(f"/checkout/{body['id']}", "Save card", failed=error is not None)
    cancel = body["cancel_url"]
    back = f'<p><a href="{escape(cancel)}">Cancel and go back</a></p>' if cancel else ""
    return f"{alert(error)}{form}{back}"
