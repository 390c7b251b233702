"""The fake's first page, and the receipt of a charge."""

from __future__ import annotations

from html import escape

from console.programs.stripe_fake.errors import Json
from console.programs.stripe_fake.pages.answers import PageAnswer, gone, shown
from console.programs.stripe_fake.pages.html import test_cards
from console.programs.stripe_fake.sandbox import Sandbox

_SHOWN = 20


def answer_overview(sandbox: Sandbox) -> PageAnswer:
    """Answers `/`: the last charges, and the test cards."""
    charges = sandbox.store.select("charge")[:_SHOWN]
    rows = "".join(
        f"<tr><td><code>{charge['id']}</code></td><td>{_amount(charge)}</td>"
        f"<td>{escape(_state(charge))}</td></tr>"
        for charge in charges
    )
    table = (
        '<table><thead><tr><th scope="col">Charge</th><th scope="col">Amount</th>'
        f'<th scope="col">State</th></tr></thead><tbody>{rows}</tbody></table>'
        if rows
        else "<p>Nothing was charged yet.</p>"
    )
    return shown("Charges", table + test_cards())


def answer_receipt(sandbox: Sandbox, parts: list[str]) -> PageAnswer:
    """Answers `/receipts/<charge>`."""
    charge = sandbox.store.load("charge", parts[0])
    if charge is None or not charge["paid"]:
        return gone("There is no such receipt.")
    card = charge["payment_method_details"]["card"]
    described = escape(charge["description"] or "")
    return shown(
        "Receipt",
        f"<p>{described}</p><p>{_amount(charge)}, paid by {card['brand']} ending in"
        f" {card['last4']}; {escape(_state(charge))}.</p>",
    )


def _amount(charge: Json) -> str:
    return f"{charge['amount']} {charge['currency'].upper()} in minor units"


def _state(charge: Json) -> str:
    parts = [charge["status"]]
    if charge["amount_refunded"]:
        parts.append(f"refunded {charge['amount_refunded']}")
    if charge["disputed"]:
        parts.append("disputed")
    return ", ".join(parts)
