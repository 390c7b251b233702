"""Compares what is entered with what Stripe has. Pure: two lists in, what does not agree out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from billing.choices import DifferenceKind


@dataclass(frozen=True, slots=True)
class Money:
    """A payment, a refund or a dispute, here or at Stripe, by Stripe's id."""

    id: str
    amount_minor: int
    currency: str
    happened_at: datetime
    organization_id: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that does not agree. A missing amount is None."""

    kind: DifferenceKind
    subject: str
    ours_minor: int | None
    theirs_minor: int | None
    currency: str
    happened_at: datetime
    organization_id: str = ""


def compare(
    ours: Iterable[Money],
    theirs: Iterable[Money],
    *,
    unknown: DifferenceKind,
    absent: DifferenceKind,
) -> list[Difference]:
    """What only one side has, as kinds `unknown` (only Stripe) and `absent` (only here), and what
    both have with different amounts; in the order of the ids."""
    here, there = _by_id(ours), _by_id(theirs)
    differences = []
    for id_ in sorted(here.keys() | there.keys()):
        own, other = here.get(id_), there.get(id_)
        known = own or other
        if known is None or _agree(own, other):
            continue
        kind = DifferenceKind.AMOUNT_DIFFERS
        if own is None:
            kind = unknown
        elif other is None:
            kind = absent
        differences.append(
            Difference(
                kind=kind,
                subject=id_,
                ours_minor=own.amount_minor if own else None,
                theirs_minor=other.amount_minor if other else None,
                currency=known.currency,
                happened_at=known.happened_at,
                organization_id=known.organization_id or (other.organization_id if other else ""),
            )
        )
    return differences


def compare_sums(
    kind: DifferenceKind,
    ledger: Mapping[tuple[str, str], int],
    rows: Mapping[tuple[str, str], int],
    at: datetime,
) -> list[Difference]:
    """Where the ledger's sums are not those of the rows. Keys are (organization, currency)."""
    return [
        Difference(
            kind=kind,
            subject=":".join(part for part in key if part),
            ours_minor=ledger.get(key, 0),
            theirs_minor=rows.get(key, 0),
            currency=key[1],
            happened_at=at,
            organization_id=key[0],
        )
        for key in sorted(ledger.keys() | rows.keys())
        if ledger.get(key, 0) != rows.get(key, 0)
    ]


def _by_id(money: Iterable[Money]) -> dict[str, Money]:
    return {one.id: one for one in money}


def _agree(own: Money | None, other: Money | None) -> bool:
    if own is None or other is None:
        return False
    return (own.amount_minor, own.currency) == (other.amount_minor, other.currency)
