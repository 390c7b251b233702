"""`expand[]`: ids in an answer that are replaced by the objects that they name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.programs.stripe_fake.errors import Json, ParameterError

# The member of an object (by its kind) → the kind of the object that its id names.
EXPANDABLE = {
    ("payment_intent", "latest_charge"): "charge",
    ("payment_intent", "customer"): "customer",
    ("payment_intent", "payment_method"): "payment_method",
    ("charge", "payment_intent"): "payment_intent",
    ("charge", "customer"): "customer",
    ("charge", "balance_transaction"): "balance_transaction",
    ("charge", "failure_balance_transaction"): "balance_transaction",
    ("refund", "charge"): "charge",
    ("refund", "payment_intent"): "payment_intent",
    ("refund", "balance_transaction"): "balance_transaction",
    ("refund", "failure_balance_transaction"): "balance_transaction",
    ("dispute", "charge"): "charge",
    ("dispute", "payment_intent"): "payment_intent",
    ("setup_intent", "customer"): "customer",
    ("setup_intent", "payment_method"): "payment_method",
    ("checkout.session", "customer"): "customer",
    ("checkout.session", "setup_intent"): "setup_intent",
    ("payment_method", "customer"): "customer",
    ("invoice_settings", "default_payment_method"): "payment_method",
}
# The source of a balance transaction is of the kind that its id begins with.
_SOURCES = {"ch_": "charge", "re_": "refund", "dp_": "dispute"}
# Objects within an object, that have no kind of their own.
_NESTED = {("customer", "invoice_settings"): "invoice_settings"}
_DEPTH_MAX = 4


def expand(body: Json, paths: list[str], load: Callable[[str, str], Json | None]) -> Json:
    """Returns an answer with the objects at `paths`; raises `ParameterError`.

    `load`: from kind and id to the object.
    """
    for path in paths:
        names = path.split(".")
        if len(names) > _DEPTH_MAX:
            raise ParameterError(
                f"You cannot expand more than {_DEPTH_MAX} levels of a property",
                param="expand",
            )
        body = _expand(body, body.get("object", ""), names, path, load)
    return body


def _expand(
    body: Json,
    kind: str,
    names: list[str],
    path: str,
    load: Callable[[str, str], Json | None],
) -> Json:
    name, rest = names[0], names[1:]
    if kind in {"list", "search_result"} and name == "data" and rest:
        data = [_expand(item, item["object"], rest, path, load) for item in body["data"]]
        return {**body, "data": data}
    if (kind, name) in _NESTED and rest:
        inner = _expand(body[name], _NESTED[kind, name], rest, path, load)
        return {**body, name: inner}
    value: Any = body.get(name)
    target = EXPANDABLE.get((kind, name))
    if (kind, name) == ("balance_transaction", "source"):
        target = _SOURCES.get(str(value)[:3], "charge")
    if target is None:
        raise ParameterError(f"This property cannot be expanded ({path}).", param="expand")
    if isinstance(value, str):
        value = load(target, value)
    if rest and isinstance(value, dict):
        value = _expand(value, target, rest, path, load)
    return {**body, name: value}
