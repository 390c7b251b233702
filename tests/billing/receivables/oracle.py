"""The rules of receivables in plain Python: amounts by name, without a ledger or a database.

It knows an invoice as a list of shares, each the amount that one source pays of it. A source is a
payment, a credit or an open dispute. Nothing here is derived from `billing.receivables`.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class OracleInvoice:
    """An invoice: what it is over, what pays it (in order), what was written off."""

    amount: int
    shares: dict[str, int] = field(default_factory=dict)
    written_off: int = 0
    void: bool = False

    @property
    def open(self) -> int:
        """What is still to be paid."""
        return 0 if self.void else self.amount - sum(self.shares.values()) - self.written_off

    @property
    def state(self) -> str:
        """The state that follows."""
        if self.void:
            return "void"
        if self.open:
            return "open"
        return "uncollectible" if self.written_off else "paid"


@dataclass
class Oracle:
    """One organization. `rest` is what each source has that pays nothing."""

    invoices: dict[str, OracleInvoice] = field(default_factory=dict)
    rest: dict[str, int] = field(default_factory=dict)
    # Payment → what of it is neither refunded nor disputed.
    left: dict[str, int] = field(default_factory=dict)
    # Dispute → its payment and amount, while it is open. Its own rest is no credit.
    disputes: dict[str, tuple[str, int]] = field(default_factory=dict)
    cash: int = 0

    @property
    def credit(self) -> int:
        """What pays nothing yet."""
        return sum(amount for name, amount in self.rest.items() if name not in self.disputes)

    def issue(self, invoice: str, amount: int) -> None:
        """Issues an invoice; one over nothing is owed by nobody."""
        if amount:
            self.invoices[invoice] = OracleInvoice(amount)
            self._use_credit()

    def pay(self, payment: str, amount: int, first: str | None = None) -> None:
        """Money comes in, for a first invoice or for the oldest ones."""
        self.rest[payment] = self.left[payment] = amount
        self.cash += amount
        if first is not None and not self.invoices[first].void:
            invoice = self.invoices[first]
            self._pay(invoice, payment)
            recovered = min(invoice.written_off, self.rest[payment])
            invoice.written_off -= recovered
            self._pay(invoice, payment)
        self._use_credit()

    def grant(self, credit: str, amount: int) -> None:
        """Grants credit."""
        self.rest[credit] = amount
        self._use_credit()

    def write_off(self, invoice: str) -> None:
        """Gives up what is open."""
        self.invoices[invoice].written_off += self.invoices[invoice].open

    def take_back(self, invoice: str) -> None:
        """Issues the credit note of an invoice."""
        row = self.invoices[invoice]
        for source, amount in row.shares.items():
            self.rest[source] += amount
        row.shares, row.written_off, row.void = {}, 0, True
        self._use_credit()

    def refund(self, payment: str, amount: int, goodwill: str | None = None) -> None:
        """Gives money back; `goodwill` names the credit that pays in its place."""
        for invoice, taken in self._take(payment, amount):
            if goodwill is not None:
                self._add(invoice, goodwill, taken)
                self.rest.setdefault(goodwill, 0)
        self.cash -= amount
        self._use_credit()

    def dispute(self, dispute: str, payment: str, amount: int) -> None:
        """A bank takes money back until it is decided whose it is."""
        self.rest[dispute] = amount
        for invoice, taken in self._take(payment, amount):
            self._add(invoice, dispute, taken)
            self.rest[dispute] -= taken
        self.disputes[dispute] = (payment, amount)
        self.cash -= amount

    def close(self, dispute: str, *, won: bool) -> None:
        """It is decided."""
        payment, amount = self.disputes.pop(dispute)
        for invoice in self.invoices.values():
            taken = invoice.shares.pop(dispute, 0)
            if won and taken:
                self._add(invoice, payment, taken)
                self.rest[dispute] += taken
                self.rest[payment] -= taken
        if won:
            self.rest[payment] += amount
            self.left[payment] += amount
            self.cash += amount
        del self.rest[dispute]
        self._use_credit()

    def _take(self, payment: str, amount: int) -> list[tuple[OracleInvoice, int]]:
        """Takes an amount out of a payment: what pays nothing first, then what pays invoices, the
        newest one first."""
        missing = amount - self.rest[payment]
        self.rest[payment] = max(0, -missing)
        self.left[payment] -= amount
        taken = []
        for invoice in reversed(self.invoices.values()):
            part = min(max(0, missing), invoice.shares.get(payment, 0))
            if part:
                invoice.shares[payment] -= part
                if not invoice.shares[payment]:
                    del invoice.shares[payment]
                missing -= part
                taken.append((invoice, part))
        assert missing <= 0
        return taken

    def _add(self, invoice: OracleInvoice, source: str, amount: int) -> None:
        invoice.shares[source] = invoice.shares.get(source, 0) + amount

    def _pay(self, invoice: OracleInvoice, source: str) -> None:
        amount = min(invoice.open, self.rest[source])
        if amount:
            self._add(invoice, source, amount)
            self.rest[source] -= amount

    def _use_credit(self) -> None:
        for source in self.rest:
            if source not in self.disputes:
                for invoice in self.invoices.values():
                    self._pay(invoice, source)
