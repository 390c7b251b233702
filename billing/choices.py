"""Values that columns of billing may have."""

from __future__ import annotations

from django.db import models


class Meter(models.TextChoices):
    """What is counted and has a price."""

    INGRESS = "ingress_bytes", "Data in"
    EGRESS = "egress_bytes", "Data out"
    STORAGE = "storage_byte_minutes", "Storage"
    PARTITIONS = "partition_minutes", "Partitions"


class PriceUnit(models.TextChoices):
    """The unit that a price, or a free allowance, is for."""

    GIB = "GiB", "GiB"
    GIB_MONTH = "GiB-month", "GiB-month"
    PARTITION_HOUR = "partition-hour", "Partition-hour"
    PARTITION_MONTH = "partition-month", "Partition-month"


class BudgetAction(models.TextChoices):
    """What happens when a budget is used up, beside the mail."""

    NOTIFY = "notify", "Notify"
    # Clusters of the organization refuse produce until it is lifted.
    SUSPEND = "suspend", "Suspend"


class BudgetState(models.TextChoices):
    """The state of a budget in the current month."""

    OK = "ok", "OK"
    # The lowest threshold is reached.
    WARNED = "warned", "Warned"
    EXCEEDED = "exceeded", "Exceeded"


class BudgetEventKind(models.TextChoices):
    """What happened to a budget."""

    CREATED = "created", "Created"
    CHANGED = "changed", "Changed"
    REMOVED = "removed", "Removed"
    THRESHOLD_REACHED = "threshold_reached", "Threshold reached"
    SUSPENDED = "suspended", "Suspended"
    RESUMED = "resumed", "Resumed"


# Kinds by which a budget's settings came into force.
BUDGET_SETTINGS = (
    BudgetEventKind.CREATED.value,
    BudgetEventKind.CHANGED.value,
    BudgetEventKind.REMOVED.value,
)


class InvoiceKind(models.TextChoices):
    """The kind of a document in a number series."""

    INVOICE = "invoice", "Invoice"
    # Takes an invoice back.
    CREDIT_NOTE = "credit_note", "Credit note"


class InvoiceState(models.TextChoices):
    """The state of an invoice's row. There is no state *void*: an invoice is void when it has a
    credit note, and its row stays as it is."""

    DRAFT = "draft", "Draft"
    ISSUED = "issued", "Issued"


class MissingKind(models.TextChoices):
    """Why an organization has no invoice of a month yet."""

    # It is issued once the usage is there.
    USAGE_INCOMPLETE = "usage_incomplete", "Usage is incomplete"
    # Somebody must remove the reason, such as a country without a rate.
    IMPOSSIBLE = "impossible", "The invoice cannot be made"


# The states that the API shows; *void* is derived from the credit note.
SHOWN_STATES = [("draft", "Draft"), ("issued", "Issued"), ("void", "Void")]


class LineKind(models.TextChoices):
    """What a line of an invoice is for."""

    USAGE = "usage", "Usage"
    # A negative amount: what was used beyond a suspending budget and is not billed.
    CAP = "cap", "Beyond the suspending budget, not billed"


class TaxCategory(models.TextChoices):
    """Categories of value added tax, by the codes of UNCL 5305 as in EN 16931."""

    STANDARD = "S", "Standard rate"
    ZERO = "Z", "Zero rate"
    REVERSE_CHARGE = "AE", "Reverse charge"
    OUTSIDE_SCOPE = "O", "Not subject to VAT"


class Account(models.TextChoices):
    """Accounts of the ledger. A debit is positive, a credit negative."""

    RECEIVABLE = "receivable", "Receivable"
    REVENUE = "revenue", "Revenue"
    TAX = "tax", "Tax owed"


class EntryKind(models.TextChoices):
    """Why an entry of the ledger was made."""

    INVOICE = "invoice", "Invoice issued"
    VOID = "void", "Invoice taken back"
