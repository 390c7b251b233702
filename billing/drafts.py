"""The content of an invoice before it has a number. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from billing.choices import InvoiceKind, LineKind, Meter, Rounding
from billing.money import price_text, share_of
from billing.parties import Party, Tax
from billing.rating import RatedLine


@dataclass(frozen=True, slots=True)
class DraftLine:
    """One line: its amount and what it follows from. Quantities are in the meter's base unit."""

    kind: str
    description: str
    amount_minor: int
    meter: str = ""
    cluster_id: str = ""
    cluster: str = ""
    quantity: int | None = None
    free_quantity: int | None = None
    unit_price: Decimal | None = None
    price_unit: str = ""
    price_unit_size: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """An invoice or a credit note of one organization and month."""

    organization_id: str
    kind: str
    month: date
    revision: int
    price_version: str
    basis_id: str
    currency: str
    seller: Party
    customer: Party
    tax: Tax
    lines: tuple[DraftLine, ...]
    cap_minor: int | None = None
    closed_early: Mapping[str, Any] | None = None
    # What is free of each meter, where it is not the catalogue's allowance.
    allowance: Mapping[str, Any] | None = None
    # Only a credit note has another one: that of its invoice.
    rounding: str = Rounding.METER.value
    # Only in a credit note: the invoice that it takes back, and why.
    credits_id: str | None = None
    reason: str = ""

    @property
    def subtotal_minor(self) -> int:
        """The sum of the rounded lines."""
        return sum(line.amount_minor for line in self.lines)

    @property
    def tax_minor(self) -> int:
        """The tax on the subtotal, rounded once.

        A credit note has exactly the invoice's tax with the opposite sign: rounded by itself, half
        up, a negative amount could differ by one.
        """
        if self.kind == InvoiceKind.CREDIT_NOTE:
            return -share_of(-self.subtotal_minor, self.tax.percent)
        return share_of(self.subtotal_minor, self.tax.percent)

    @property
    def total_minor(self) -> int:
        """The amount to pay: subtotal and tax."""
        return self.subtotal_minor + self.tax_minor

    def sha256(self) -> str:
        """A hash of the whole content. Two drafts with the same hash are the same invoice.

        The ids of roll-ups are left out: roll-ups made anew after a restore have other ids.
        """
        content = {
            "organization_id": self.organization_id,
            "kind": self.kind,
            "month": self.month.isoformat(),
            "revision": self.revision,
            "price_version": self.price_version,
            "currency": self.currency,
            "seller": self.seller.as_json(),
            "customer": self.customer.as_json(),
            "tax": self.tax.as_json(),
            "cap_minor": self.cap_minor,
            "closed_early": dict(self.closed_early) if self.closed_early else None,
            "credits": self.credits_id,
            "reason": self.reason,
            "total_minor": self.total_minor,
            "lines": [_line_json(line) for line in self.lines],
        }
        if self.rounding != Rounding.LINE:
            content["rounding"] = self.rounding
        if self.allowance is not None:
            content["allowance"] = dict(self.allowance)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def usage_lines(rated: Sequence[RatedLine], names: Mapping[str, str]) -> list[DraftLine]:
    """The lines for rated usage. `names` maps cluster ids to names."""
    return [
        DraftLine(
            kind=LineKind.USAGE.value,
            description=str(Meter(line.meter).label),
            amount_minor=line.amount_minor,
            meter=line.meter,
            cluster_id=line.cluster_id,
            cluster=names.get(line.cluster_id, ""),
            quantity=line.quantity,
            free_quantity=line.free_quantity,
            unit_price=line.unit_price,
            price_unit=line.unit,
            price_unit_size=line.unit_size,
        )
        for line in rated
    ]


def cap_line(lines: Sequence[DraftLine], cap_minor: int | None) -> list[DraftLine]:
    """The line that takes back the amount beyond a suspending budget's cap; empty without one."""
    subtotal = sum(line.amount_minor for line in lines)
    if cap_minor is None or subtotal <= cap_minor:
        return []
    return [
        DraftLine(
            kind=LineKind.CAP.value,
            description=str(LineKind.CAP.label),
            amount_minor=cap_minor - subtotal,
        )
    ]


def credit_lines(lines: Sequence[DraftLine]) -> tuple[DraftLine, ...]:
    """The lines of a credit note: the invoice's lines with the sign of each amount changed."""
    return tuple(replace(line, amount_minor=-line.amount_minor) for line in lines)


def _line_json(line: DraftLine) -> dict[str, Any]:
    price = None if line.unit_price is None else price_text(line.unit_price)
    return {
        "kind": line.kind,
        "description": line.description,
        "amount_minor": line.amount_minor,
        "meter": line.meter,
        "cluster_id": line.cluster_id,
        "cluster": line.cluster,
        "quantity": line.quantity,
        "free_quantity": line.free_quantity,
        "unit_price": price,
        "price_unit": line.price_unit,
        "price_unit_size": line.price_unit_size,
    }
