"""The customer portal's page: cards are seen, added, made the default and removed."""

from __future__ import annotations

from html import escape

from console.programs.stripe_fake.errors import ApiError, Json
from console.programs.stripe_fake.objects import customers, payment_methods, setup_intents
from console.programs.stripe_fake.objects.portal import open_session
from console.programs.stripe_fake.pages.answers import PageAnswer, gone, sent_to, shown
from console.programs.stripe_fake.pages.html import alert, card_form, card_name
from console.programs.stripe_fake.pages.saving import authentication_address, save_card
from console.programs.stripe_fake.sandbox import Sandbox


def answer_portal(
    sandbox: Sandbox, method: str, parts: list[str], form: dict[str, str]
) -> PageAnswer:
    """Answers `/portal/<secret>` and the forms on it: `add`, `default`, `remove`."""
    body = open_session(sandbox, parts[0])
    if body is None:
        return gone("The session has expired.")
    here = f"/portal/{parts[0]}"
    try:
        if method == "POST" and parts[1:] == ["add"]:
            address = _add(sandbox, body, form, f"{sandbox.base}{here}/return")
            return sent_to(address or here)
        if method == "POST" and parts[1:] in (["default"], ["remove"]):
            _change(sandbox, body, parts[1], form.get("payment_method", ""))
            return sent_to(here)
        if parts[1:] == ["return"]:
            _finish(sandbox, body, form.get("setup_intent", ""))
            return sent_to(here)
    except ApiError as error:
        return shown("Your cards", _content(sandbox, body, here, str(error)), 402)
    return shown("Your cards", _content(sandbox, body, here, None))


def _add(sandbox: Sandbox, body: Json, form: dict[str, str], return_url: str) -> str | None:
    """Saves a card and makes it the default; returns where it must be authenticated first."""
    intent = setup_intents.create_setup_intent(sandbox, {"customer": body["customer"]})
    intent = save_card(sandbox, intent, form, return_url)
    if intent["status"] == "succeeded":
        _make_default(sandbox, body["customer"], intent["payment_method"])
    return authentication_address(intent)


def _finish(sandbox: Sandbox, body: Json, intent_id: str) -> None:
    intent = sandbox.load("setup_intent", intent_id)
    if intent["customer"] != body["customer"]:
        raise ApiError(404, "This card is another customer's.")
    if intent["status"] != "succeeded":
        raise ApiError(402, (intent["last_setup_error"] or {"message": "Try again."})["message"])
    _make_default(sandbox, body["customer"], intent["payment_method"])


def _change(sandbox: Sandbox, body: Json, verb: str, method_id: str) -> None:
    method = payment_methods.method_of_customer(sandbox, method_id, body["customer"])
    if verb == "remove":
        payment_methods.detach_method(sandbox, method)
    else:
        _make_default(sandbox, body["customer"], method["id"])


def _make_default(sandbox: Sandbox, customer_id: str, method_id: str) -> None:
    settings = {"invoice_settings": {"default_payment_method": method_id}}
    customers.update_customer(sandbox, customer_id, settings)


def _content(sandbox: Sandbox, body: Json, here: str, error: str | None) -> str:
    customer = sandbox.load("customer", body["customer"])
    default = customer["invoice_settings"]["default_payment_method"]
    rows = "".join(
        f"<tr><td>{escape(card_name(method))}{' (default)' if method['id'] == default else ''}</td>"
        f"<td>{_buttons(here, method, default)}</td></tr>"
        for method in sandbox.store.select("payment_method", {"customer": customer["id"]})
    )
    table = (
        '<table><thead><tr><th scope="col">Card</th><th scope="col">Actions</th></tr></thead>'
        f"<tbody>{rows}</tbody></table>"
        if rows
        else "<p>No card is saved.</p>"
    )
    back = body["return_url"]
    link = f'<p><a href="{escape(back)}">Go back</a></p>' if back else ""
    form = card_form(f"{here}/add", "Add card", failed=error is not None)
    return f"{alert(error)}{table}<h2>Add a card</h2>{form}{link}"


def _buttons(here: str, method: Json, default: str | None) -> str:
    verbs = [("remove", "Remove")]
    if method["id"] != default:
        verbs.insert(0, ("default", "Make default"))
    return " ".join(
        f'<form class="inline" method="post" action="{here}/{verb}">'
        f'<input type="hidden" name="payment_method" value="{method["id"]}">'
        f'<button class="plain" type="submit"'
        f' aria-label="{label}: {escape(card_name(method))}">{label}</button></form>'
        for verb, label in verbs
    )
