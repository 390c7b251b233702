"""Numbers of invoices: none twice, none left out, whatever is rolled back or restored.

Two records say which numbers are used: a counter in PostgreSQL, and a chain of objects in a store
to which objects are only added. Whoever takes numbers of a series holds its lock, so one does at a
time. Before the transaction that writes invoices, and outside of any, it *reserves* a block:

    v1/series=FR-2026/000000000101-0000.json           the invoices that get the numbers from 101 on

and after the commit the block is *settled*, once, by whoever first stores this object:

    v1/series=FR-2026/000000000101-0000.outcome.json   issued, or abandoned

- Rolled back: the counter still says 100 and the block has no outcome. The next transaction settles
  it as abandoned and takes the same numbers by the next attempt (`…101-0001`). No number is left
  out.
- Committed, and died before settling: the counter says more than 100, so nobody abandons it. Before
  the next block is reserved, and by a sweep, it is settled as issued.
- It hung for so long that its lock passed to another one: that one abandons the block and goes on
  as after a rollback. The one that hung is refused its transaction (`keep_block`).
- Restored from a backup: the counter says 100 again and the block is settled as issued. Its numbers
are *lost* to this database: the counter moves past them, and each is kept for the invoice that
had it. When that invoice is issued again with the same content, it has its old number, id and
time; any other invoice gets the next free number.
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

from django.db import IntegrityError, transaction

from billing.choices import InvoiceKind
from billing.errors import NumbersDiverged
from billing.models import Invoice, LostNumber, NumberBlock, NumberSeries
from console.base.common import locks
from console.base.common.clock import now
from console.base.common.conf import config
from console.base.common.transactions import commit_so_far
from metering.events.store import UsageStore

VERSION = 1
ISSUED = "issued"
ABANDONED = "abandoned"
# The number of transactions in a row that may be rolled back at the same number.
ATTEMPTS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Claim:
    """An invoice that needs a number. `sha256` is the hash of its content (`Draft.sha256`)."""

    organization_id: str
    kind: str
    month: date
    revision: int
    invoice_id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """The number that a claim got. An invoice that had the number before keeps its id and time."""

    invoice_id: str
    series: str
    sequence: int
    block_id: str
    issued_at: datetime

    @property
    def number(self) -> str:
        """The number as it is printed, such as `FR-2026-000042`."""
        return f"{self.series}-{self.sequence:06d}"


@dataclass(frozen=True, slots=True)
class Taken:
    """Numbers that were taken. `block` is the one to be kept with them; None where all are old."""

    assigned: list[Assigned]
    block: NumberBlock | None


def series_of(kind: str, at: datetime) -> str:
    """The series of documents issued at a time: one a year for invoices, one for credit notes."""
    prefix = config().billing.invoice_prefix
    note = "C" if kind == InvoiceKind.CREDIT_NOTE else ""
    return f"{prefix}{note}-{at.year}"


def lock_series(series: str) -> NumberSeries:
    """The counter of a series, which nobody else changes before the task's transaction ends.

    What was read before may have changed while it waited. Raises `Unavailable` where others hold
    the series for too long.
    """
    locks.lock("invoice_numbers", series)
    # From here on the lock outlasts waits; what is read below is what its last holder left.
    commit_so_far()
    # The row of a new series comes with its first block.
    row = NumberSeries.objects.filter(series=series).first()
    return NumberSeries(series=series) if row is None else row


def take_numbers(
    series: NumberSeries, claims: Sequence[Claim], *, store: UsageStore, at: datetime
) -> Taken:
    """A number for each claim, in their order. `series` must be locked, the scope the system's.

    It waits for the store, so nothing may be written before. Raises `NumbersDiverged`,
    `Unavailable` where the lock was lost, and `OSError` where the store cannot be reached.
    """
    _settle_last(series, store)
    block = None
    while True:
        old = _find_lost_numbers(series, claims)
        new = [claim for claim in claims if claim.invoice_id not in old]
        if not new:
            break
        block = _reserve_block(series, new, store=store, at=at)
        if block is None:
            continue  # there was a block that this database had lost: claims may have numbers in it
        for sequence, claim in enumerate(new, start=block.first):
            old[claim.invoice_id] = Assigned(
                claim.invoice_id, series.series, sequence, block.pk, at
            )
        break
    return Taken([old[claim.invoice_id] for claim in claims], block)


def keep_block(block: NumberBlock) -> None:
    """Writes a reserved block, in the transaction that uses its numbers.

    The counter follows by a trigger: the serving role cannot move it. Raises `Unavailable` where
    the lock of the series was lost: its numbers are then another's.
    """
    locks.require_held()
    try:
        with transaction.atomic():
            block.save(force_insert=True)
    except IntegrityError as error:
        message = f"the counter of {block.series_id} was moved by somebody without its lock"
        raise NumbersDiverged(message) from error


def confirm_block(block_id: str, store: UsageStore) -> None:
    """Records in the store that a committed block is issued; from then on people see its invoices.

    Raises `NumbersDiverged` where another database settled the block as abandoned.
    """
    block = NumberBlock.objects.get(pk=block_id)
    if block.confirmed_at is not None:
        return
    if _settle_block(store, block.key, ISSUED) != ISSUED:
        message = f"{block.key} was taken by another database"
        raise NumbersDiverged(message)
    NumberBlock.objects.filter(pk=block_id).update(confirmed_at=now())


def confirm_blocks(store: UsageStore) -> int:
    """Confirms the blocks of processes that died after their commit; returns how many.

    A block that cannot be confirmed does not hold up those of other series: they are confirmed, and
    then the first of the errors is raised.
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
        commit_so_far()


def _find_lost_numbers(series: NumberSeries, claims: Sequence[Claim]) -> dict[str, Assigned]:
    """Invoice id of a claim → the number that the same invoice had before this database lost it."""
    lost = LostNumber.objects.filter(
        block__series=series, sha256__in=[claim.sha256 for claim in claims]
    )
    taken = Invoice.objects.filter(series=series, sequence__in=lost.values("sequence"))
    in_use = set(taken.values_list("sequence", flat=True))
    lost_by_content = {
        (number.organization_id, number.kind, number.month, number.revision, number.sha256): number
        for number in lost
        if number.sequence not in in_use
    }
    assigned = {}
    for claim in claims:
        key = (claim.organization_id, claim.kind, claim.month, claim.revision, claim.sha256)
        if key in lost_by_content:
            number = lost_by_content[key]
            assigned[claim.invoice_id] = Assigned(
                number.invoice_id,
                series.series,
                number.sequence,
                number.block_id,
                number.issued_at,
            )
    return assigned


def _reserve_block(
    series: NumberSeries, claims: Sequence[Claim], *, store: UsageStore, at: datetime
) -> NumberBlock | None:
    """Reserves the block after the counter; its row is not written yet.

    None where a block of a lost history is there: its numbers are then remembered as lost, the
    counter has moved past them, and the caller tries again.
    """
    first = series.last + 1
    body = _block_json(series.series, first, claims, at)
    for attempt in range(ATTEMPTS_MAX):
        key = f"v1/series={series.series}/{first:012d}-{attempt:04d}.json"
        if store.put_new(key, body):
            last = first + len(claims) - 1
            return NumberBlock(series=series, first=first, last=last, key=key)
        if _settle_block(store, key, ABANDONED) == ISSUED:
            _remember_lost(series, key, store)
            return None
    message = f"{ATTEMPTS_MAX} transactions in a row were rolled back at {series.series}-{first}"
    raise NumbersDiverged(message)


def _remember_lost(series: NumberSeries, key: str, store: UsageStore) -> None:
    """Adds a block that the store has as issued and this database lacks, and its lost numbers."""
    reservation = json.loads(store.get(key))
    first, last = reservation["first"], reservation["last"]
    block = NumberBlock(series=series, first=first, last=last, key=key, confirmed_at=now())
    keep_block(block)
    series.last = last
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
            issued_at=datetime.fromisoformat(reservation["issued_at"]),
        )
        for sequence, claim in enumerate(reservation["claims"], start=first)
    )
    commit_so_far()


def _settle_block(store: UsageStore, key: str, outcome: str) -> str:
    """Settles a block, and returns the outcome that counts: that of whoever settled it first."""
    outcome_key = f"{key.removesuffix('.json')}.outcome.json"
    if store.put_new(outcome_key, _encode_json({"version": VERSION, "outcome": outcome})):
        return outcome
    return str(json.loads(store.get(outcome_key))["outcome"])


def _block_json(series: str, first: int, claims: Sequence[Claim], at: datetime) -> bytes:
    return _encode_json(
        {
            "version": VERSION,
            "series": series,
            "first": first,
            "last": first + len(claims) - 1,
            "issued_at": at.isoformat(),
            # In the order of their numbers: the first claim has the number `first`.
            "claims": [{**asdict(claim), "month": claim.month.isoformat()} for claim in claims],
        }
    )


def _encode_json(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
