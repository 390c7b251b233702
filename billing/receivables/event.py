"""One event of money: what it settles, what it posts, and its one entry in the ledger.

The organization must be locked (`lock_organizations`): rows are changed here in memory, and written
at the end. Amounts on accounts and amounts of rows move together, so that at each commit

- the account `receivable` is the sum of what is open, over all receivables,
- `customer_credit` is the sum of what payments and credits have unapplied, with the opposite sign,
- `disputed` is the sum of what open disputes settle.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from billing.choices import Account, EntryKind, PaymentMethod, ReceivableState, SettlementKind
from billing.models import (
    Credit,
    Dispute,
    JournalEntry,
    Payment,
    Posting,
    Receivable,
    Settlement,
)
from console.base.accounts.models import Organization
from console.base.common.errors import NotFound

# What settles a receivable: each has an amount of which a part is unapplied.
Source = Payment | Credit | Dispute


def lock_organizations(organization_ids: Iterable[str]) -> None:
    """Has whoever else changes what these organizations owe wait until the transaction ends.

    Every writer of receivables takes this lock first. Raises `NotFound` for an organization that is
    not there, or not in scope.
    """
    ids = sorted(set(organization_ids))
    rows = Organization.objects.filter(pk__in=ids).select_for_update(no_key=True).order_by("pk")
    if list(rows.values_list("pk", flat=True)) != ids:
        raise NotFound


def money_account(method: str) -> Account:
    """The account that money of a payment method is on."""
    return Account.CARD_CLEARING if method == PaymentMethod.CARD else Account.BANK


class MoneyEvent:
    """What one event changes. Nothing is written before `write`."""

    def __init__(
        self, kind: EntryKind, *, organization_id: str, source_id: str, currency: str, at: datetime
    ) -> None:
        self.at = at
        self._entry = JournalEntry(
            organization_id=organization_id,
            kind=kind.value,
            source_id=source_id,
            currency=currency,
            created_at=at,
        )
        self._amounts: dict[Account, int] = {}
        self._settlements: list[Settlement] = []
        self._receivables: dict[str, Receivable] = {}
        self._sources: dict[str, Source] = {}

    def post(self, account: Account, amount_minor: int) -> None:
        """Debits an account, or credits it where the amount is negative."""
        self._amounts[account] = self._amounts.get(account, 0) + amount_minor

    def settle(
        self,
        receivable: Receivable,
        kind: SettlementKind,
        amount_minor: int,
        source: Source | None = None,
    ) -> None:
        """Makes the open amount smaller by an amount, which the source has less of then; or, where
        it is negative, larger. Without a source the caller posts the other side."""
        receivable.open_minor -= amount_minor
        self.post(Account.RECEIVABLE, -amount_minor)
        if source is not None:
            source.unapplied_minor -= amount_minor
            held = Account.DISPUTED if isinstance(source, Dispute) else Account.CUSTOMER_CREDIT
            self.post(held, amount_minor)
            self._sources[source.pk] = source
        self._add_settlement(receivable, kind, amount_minor, source)

    def write_off(self, receivable: Receivable, amount_minor: int) -> None:
        """Writes an amount off, or, where it is negative, takes that back."""
        receivable.written_off_minor += amount_minor
        self.post(Account.BAD_DEBT, amount_minor)
        kind = SettlementKind.WRITE_OFF if amount_minor > 0 else SettlementKind.REVERSAL
        self.settle(receivable, kind, amount_minor)

    def change(self, source: Source) -> None:
        """Has a source be written whose unapplied amount the caller changed."""
        self._sources[source.pk] = source

    def write(self) -> bool:
        """Writes the entry, the settlements and what they change; returns whether it is anything.

        A receivable that is not open becomes paid, or uncollectible where it was written off.
        """
        amounts = {account: amount for account, amount in self._amounts.items() if amount}
        for source in self._sources.values():
            source.save(update_fields=["unapplied_minor"])
        if not amounts and not self._settlements:
            return False
        self._entry.posting_count = len(amounts)
        self._entry.save(force_insert=True)
        Posting.objects.bulk_create(
            Posting(
                organization_id=self._entry.organization_id,
                entry=self._entry,
                account=account.value,
                amount_minor=amount,
            )
            for account, amount in amounts.items()
        )
        for settlement in self._settlements:
            settlement.entry = self._entry
        Settlement.objects.bulk_create(self._settlements)
        for receivable in self._receivables.values():
            save_receivable(receivable, self.at)
        return True

    def _add_settlement(
        self,
        receivable: Receivable,
        kind: SettlementKind,
        amount_minor: int,
        source: Source | None,
    ) -> None:
        self._receivables[receivable.pk] = receivable
        self._settlements.append(
            Settlement(
                organization_id=receivable.organization_id,
                receivable=receivable,
                kind=kind.value,
                amount_minor=amount_minor,
                payment=source if isinstance(source, Payment) else None,
                credit=source if isinstance(source, Credit) else None,
                dispute=source if isinstance(source, Dispute) else None,
                created_at=self.at,
            )
        )


def save_receivable(receivable: Receivable, at: datetime, *, void: bool = False) -> None:
    """Writes a receivable's amounts, and the state that follows from them."""
    if receivable.open_minor:
        receivable.state, receivable.settled_at = ReceivableState.OPEN.value, None
    else:
        if void:
            state = ReceivableState.VOID
        elif receivable.written_off_minor:
            state = ReceivableState.UNCOLLECTIBLE
        else:
            state = ReceivableState.PAID
        if receivable.state != state:
            receivable.state, receivable.settled_at = state.value, at
    receivable.save(update_fields=["open_minor", "written_off_minor", "state", "settled_at"])
