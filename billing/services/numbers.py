"""Numbers of invoices: none twice, none left out, whatever is rolled back or restored.

Two records of which numbers are used: a counter in PostgreSQL, and a chain of objects in a store
that only ever grows. A transaction locks the counter's row until it ends, so of one series one
transaction at a time takes numbers. Before it commits it *reserves* a block of them:

    v1/series=FR-2026/000000000101-0000.json           who gets the numbers from 101 on

and after the commit the block is *settled*, once, whoever puts this object first:

    v1/series=FR-2026/000000000101-0000.outcome.json   issued, or abandoned

- Rolled back: the counter still says 100 and the block has no outcome. The next transaction settles
  it as abandoned and takes the same numbers by the next attempt (`…101-0001`). No number is left
  out.
- Committed, and died before settling: the counter says more than 100, so nobody abandons it. Before
  the next block is reserved, and by a sweep, it is settled as issued.
- Restored from a backup: the counter says 100 again and the block is settled as issued. Its numbers
  are *lost* to this database: the counter moves past them, and each is kept for the very invoice
  that had it. Issued again with the same content that one has its old number, id and time; any
  other invoice gets the next free number.
- Committed, never settled, then restored: nobody was shown those invoices (only settled ones are),
  so the block is abandoned and its numbers are used anew.
- Two databases at once: one of them settles a block as issued, the other finds it abandoned and
  stops (`NumbersDiverged`) before it takes another number, as a block is only reserved once the one
  before it is settled as issued.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any

from billing.choices import InvoiceKind
from billing.errors import NumbersDiverged
from billing.models import Invoice, LostNumber, NumberBlock, NumberSeries
from console.base.common.clock import now
from console.base.common.conf import config
from metering.events.store import UsageStore

VERSION = 1
ISSUED = "issued"
ABANDONED = "abandoned"
# Rolled back one after the other, at the same number.
ATTEMPTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Claim:
    """An invoice that needs a number. `sha256` is of all that it says."""

    organization_id: str
    kind: str
    month: date
    revision: int
    invoice_id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """The number that a claim got. An invoice that had it before keeps its id and its time."""

    invoice_id: str
    series: str
    sequence: int
    block_id: str
    issued_at: datetime

    @property
    def number(self) -> str:
        """As it is printed."""
        return f"{self.series}-{self.sequence:06d}"


def series_of(kind: str, at: datetime) -> str:
    """The series of what is issued at a time: one a year, and another one of credit notes."""
    prefix = config().billing.invoice_prefix
    note = "C" if kind == InvoiceKind.CREDIT_NOTE else ""
    return f"{prefix}{note}-{at.year}"


def lock_series(series: str) -> NumberSeries:
    """The counter, locked until the transaction ends."""
    NumberSeries.objects.get_or_create(series=series)
    return NumberSeries.objects.select_for_update().get(series=series)


def take_numbers(
    series: NumberSeries, claims: Sequence[Claim], *, store: UsageStore, at: datetime
) -> list[Assigned]:
    """A number for each claim, in their order. `series` is locked; the scope is the system's.

    Raises `NumbersDiverged`, and `OSError` where the store cannot be reached: then nothing may be
    committed.
    """
    _settle_last(series, store)
    while True:
        old = _numbers_of_old(series, claims)
        new = [claim for claim in claims if claim.invoice_id not in old]
        if not new:
            break
        block = _reserve(series, new, store=store, at=at)
        if block is None:
            continue  # there were blocks that this database had lost
        for sequence, claim in enumerate(new, start=block.first):
            old[claim.invoice_id] = Assigned(
                claim.invoice_id, series.series, sequence, block.pk, at
            )
        break
    return [old[claim.invoice_id] for claim in claims]


def confirm_block(block_id: str, store: UsageStore) -> None:
    """Puts on record that a committed block is issued; people see its invoices from then on."""
    block = NumberBlock.objects.get(pk=block_id)
    if block.confirmed_at is not None:
        return
    if _settle(store, block.key, ISSUED) != ISSUED:
        message = f"{block.key} was taken by another database"
        raise NumbersDiverged(message)
    NumberBlock.objects.filter(pk=block_id).update(confirmed_at=now())


def confirm_blocks(store: UsageStore) -> int:
    """Confirms what a process left behind that died after its commit; gives how many.

    A block that cannot be confirmed does not keep the others, of other series, from it: they are
    confirmed, and then the first of the errors is raised.
    """
    waiting = list(NumberBlock.objects.filter(confirmed_at=None).values_list("pk", flat=True))
    errors: list[Exception] = []
    for block_id in waiting:
        try:
            confirm_block(block_id, store)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return len(waiting)


def _settle_last(series: NumberSeries, store: UsageStore) -> None:
    last = series.blocks.order_by("-first").first()
    if last is not None and last.confirmed_at is None:
        confirm_block(last.pk, store)


def _numbers_of_old(series: NumberSeries, claims: Sequence[Claim]) -> dict[str, Assigned]:
    """By the claim's invoice: numbers that the same invoices had in what was lost."""
    lost = LostNumber.objects.filter(
        block__series=series, sha256__in=[claim.sha256 for claim in claims]
    )
    taken = Invoice.objects.filter(series=series, sequence__in=lost.values("sequence"))
    in_use = set(taken.values_list("sequence", flat=True))
    known = {
        (each.organization_id, each.kind, each.month, each.revision, each.sha256): each
        for each in lost
        if each.sequence not in in_use
    }
    found = {}
    for claim in claims:
        key = (claim.organization_id, claim.kind, claim.month, claim.revision, claim.sha256)
        if key in known:
            each = known[key]
            found[claim.invoice_id] = Assigned(
                each.invoice_id, series.series, each.sequence, each.block_id, each.issued_at
            )
    return found


def _reserve(
    series: NumberSeries, claims: Sequence[Claim], *, store: UsageStore, at: datetime
) -> NumberBlock | None:
    """The block behind the counter; None where lost ones lay there, which are known then."""
    first = series.last + 1
    body = _block_json(series.series, first, claims, at)
    for attempt in range(ATTEMPTS_MAX):
        key = f"v1/series={series.series}/{first:012d}-{attempt:04d}.json"
        if store.put_new(key, body):
            return _add_block(series, first, first + len(claims) - 1, key)
        if _settle(store, key, ABANDONED) == ISSUED:
            _remember_lost(series, key, store)
            return None
    message = f"{ATTEMPTS_MAX} transactions in a row were rolled back at {series.series}-{first}"
    raise NumbersDiverged(message)


def _add_block(series: NumberSeries, first: int, last: int, key: str) -> NumberBlock:
    series.last = last
    series.save(update_fields=["last"])
    return NumberBlock.objects.create(series=series, first=first, last=last, key=key)


def _remember_lost(series: NumberSeries, key: str, store: UsageStore) -> None:
    """Takes numbers as used that the store says are issued and that this database has not."""
    found = json.loads(store.get(key))
    block = _add_block(series, found["first"], found["last"], key)
    NumberBlock.objects.filter(pk=block.pk).update(confirmed_at=now())
    LostNumber.objects.bulk_create(
        LostNumber(
            block=block,
            sequence=sequence,
            organization_id=claim["organization_id"],
            kind=claim["kind"],
            month=date.fromisoformat(claim["month"]),
            revision=claim["revision"],
            invoice_id=claim["invoice_id"],
            sha256=claim["sha256"],
            issued_at=datetime.fromisoformat(found["issued_at"]),
        )
        for sequence, claim in enumerate(found["claims"], start=found["first"])
    )


def _settle(store: UsageStore, key: str, wanted: str) -> str:
    """Settles a block, or reads how it was settled: the first one to say so decides."""
    outcome_key = f"{key.removesuffix('.json')}.outcome.json"
    if store.put_new(outcome_key, _encoded({"version": VERSION, "outcome": wanted})):
        return wanted
    return str(json.loads(store.get(outcome_key))["outcome"])


def _block_json(series: str, first: int, claims: Sequence[Claim], at: datetime) -> bytes:
    return _encoded(
        {
            "version": VERSION,
            "series": series,
            "first": first,
            "last": first + len(claims) - 1,
            "issued_at": at.isoformat(),
            # The first has the number `first`, and so on.
            "claims": [{**asdict(claim), "month": claim.month.isoformat()} for claim in claims],
        }
    )


def _encoded(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
