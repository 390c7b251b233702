"""Balance transactions: what each movement of money did to the account's balance."""

from __future__ import annotations

from console.programs.stripe_fake.endpoints import listing, retrieve
from console.programs.stripe_fake.errors import Json
from console.programs.stripe_fake.forms import Text
from console.programs.stripe_fake.sandbox import Sandbox

FEE_FIXED_MINOR = 30
FEE_PER_MILLE = 29
AVAILABLE_AFTER_S = 2 * 86_400
DISPUTE_FEE_MINOR = 1500


def record_movement(
    sandbox: Sandbox, source: Json, kind: str, amount: int, *, fee: int = 0, category: str = ""
) -> Json:
    """Stores a balance transaction of `amount` minor units, negative where money goes out."""
    now = sandbox.now()
    described = "Stripe processing fees" if kind == "charge" else "Dispute fee"
    fees = [
        {
            "amount": fee,
            "application": None,
            "currency": source["currency"],
            "description": described,
            "type": "stripe_fee",
        }
    ]
    return sandbox.add(
        {
            "id": sandbox.make_id("txn_"),
            "object": "balance_transaction",
            "amount": amount,
            "available_on": now + AVAILABLE_AFTER_S,
            "balance_type": "payments",
            "created": now,
            "currency": source["currency"],
            "description": source.get("description"),
            "exchange_rate": None,
            "fee": fee,
            "fee_details": fees if fee else [],
            "net": amount - fee,
            "reporting_category": category or kind,
            "source": source["id"],
            "status": "pending",
            "type": kind,
        }
    )


def charge_fee(amount: int) -> int:
    """Returns Stripe's fee for a charge: 2.9 % and 30 minor units."""
    return (amount * FEE_PER_MILLE + 500) // 1000 + FEE_FIXED_MINOR


_PATH = "/v1/balance_transactions"
ENDPOINTS = (
    retrieve("balance_transaction", _PATH),
    listing("balance_transaction", _PATH, {"source": Text(), "type": Text(), "currency": Text()}),
)
