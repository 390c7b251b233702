"""The frame of the hosted pages: plain HTML that needs no script. Pure."""

from __future__ import annotations

from html import escape

from console.programs.stripe_fake.cards import CARDS, Card
from console.programs.stripe_fake.errors import Json

_STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; margin: 0; background: #f4f5f7; color: #1a1f26; }
main { max-width: 34rem; margin: 3rem auto; padding: 2rem; background: #fff;
  border: 1px solid #c9ced6; border-radius: 8px; }
h1 { font-size: 1.4rem; margin-top: 0; } h2 { font-size: 1.1rem; }
label { display: block; font-weight: 600; margin-top: 1rem; }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem;
  border: 1px solid #6b7480; border-radius: 4px; }
button { font: inherit; margin-top: 1rem; padding: .5rem 1rem; color: #fff; background: #3b4ac2;
  border: 1px solid #3b4ac2; border-radius: 4px; cursor: pointer; }
button.plain { color: #1a1f26; background: #fff; border-color: #6b7480; }
:focus-visible { outline: 3px solid #1a1f26; outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .3rem .5rem .3rem 0; border-bottom: 1px solid #dde1e7;
  vertical-align: top; }
form.inline { display: inline; } [role=alert] { border-left: 4px solid #b3261e;
  padding: .5rem 1rem; background: #fdeceb; } .note { color: #4a525d; }
"""


def page(title: str, content: str) -> str:
    """Returns a whole page; `content` is HTML."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)} – fake of Stripe</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{content}"
        '<p class="note">This is a fake of Stripe on this machine. No money moves, and only test'
        " cards work.</p></main></body></html>"
    )


def alert(text: str | None) -> str:
    """Returns an error for the reader, or nothing."""
    return f'<p role="alert" id="error">{escape(text)}</p>' if text else ""


def card_form(action: str, button: str, *, failed: bool) -> str:
    """Returns a form with the fields of a card, and the test cards below it."""
    described = ' aria-describedby="error" aria-invalid="true"' if failed else ""
    return (
        f'<form method="post" action="{escape(action)}">'
        '<label for="number">Card number</label>'
        '<input id="number" name="number" inputmode="numeric" autocomplete="cc-number"'
        f" required{described}>"
        '<label for="expiry">Expiry (MM/YY)</label>'
        '<input id="expiry" name="expiry" value="12/34" autocomplete="cc-exp" required'
        ' pattern="(0[1-9]|1[0-2])/[0-9]{2}">'
        '<label for="cvc">Security code</label>'
        '<input id="cvc" name="cvc" value="123" inputmode="numeric" autocomplete="cc-csc" required'
        ' pattern="[0-9]{3,4}">'
        f'<button type="submit">{escape(button)}</button></form>{test_cards()}'
    )


def test_cards() -> str:
    """Returns the test cards with what each does."""
    rows = "".join(
        f"<tr><td><code>{_grouped(number)}</code></td><td>{escape(_described(card))}</td></tr>"
        for number, card in CARDS.items()
    )
    return (
        "<details><summary>Test cards</summary><table><thead><tr>"
        '<th scope="col">Number</th><th scope="col">What it does</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details>"
    )


def _grouped(number: str) -> str:
    return " ".join(number[n : n + 4] for n in range(0, len(number), 4))


def _described(card: Card) -> str:
    parts = []
    if card.declines_setup is not None:
        parts.append(f"is refused ({card.declines_setup})")
    elif card.declines is not None:
        parts.append(f"can be saved, and declines each charge ({card.declines})")
    if card.authentication == "always":
        parts.append("needs authentication each time")
    if card.authentication == "unless_set_up":
        parts.append("needs authentication when it is saved")
    if card.disputed is not None:
        parts.append(f"each charge is disputed ({card.disputed})")
    if card.refunds != "succeed":
        parts.append("its refunds take a minute" if card.refunds == "pend" else "its refunds fail")
    return "; ".join(parts) or f"succeeds ({card.brand}, {card.country}, {card.funding})"


def card_name(method: Json) -> str:
    """Returns how a saved card is called, such as `Visa ending in 4242, expires 12/34`."""
    card = method["card"]
    expires = f"{card['exp_month']:02}/{card['exp_year'] % 100:02}"
    return f"{card['brand'].capitalize()} ending in {card['last4']}, expires {expires}"
