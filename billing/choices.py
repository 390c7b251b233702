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
    # Clusters of the organization refuse produce and fetch until it is lifted.
    SUSPEND = "suspend", "Suspend"
    # They slow both down to a rate.
    THROTTLE = "throttle", "Throttle"


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
    THROTTLED = "throttled", "Throttled"
    # Traffic goes on, or at its full rate again.
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


# The states that the API shows. Those of an issued invoice are derived from its credit note and its
# receivable.
SHOWN_STATES = [
    ("draft", "Draft"),
    ("issued", "Issued"),
    ("paid", "Paid"),
    ("overdue", "Overdue"),
    ("uncollectible", "Uncollectible"),
    ("void", "Void"),
]


class Rounding(models.TextChoices):
    """What of an invoice was rounded to whole minor units, each once and half up."""

    # Invoices from before the sum was: they stay as they are.
    LINE = "line", "Each line"
    METER = "meter", "The sum of each meter and price"


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
    # Money that is there: at the bank, and at Stripe.
    BANK = "bank", "Bank"
    CARD_CLEARING = "card_clearing", "Money at Stripe"
    # What customers paid or were granted and that pays no invoice yet. We owe it.
    CUSTOMER_CREDIT = "customer_credit", "Credit of customers"
    # What was written off, and what was given.
    BAD_DEBT = "bad_debt", "Written off"
    GOODWILL = "goodwill", "Goodwill"
    # Money that a card's holder claims back, while the bank has not decided.
    DISPUTED = "disputed", "Disputed"


class EntryKind(models.TextChoices):
    """Why an entry of the ledger was made."""

    INVOICE = "invoice", "Invoice issued"
    VOID = "void", "Invoice taken back"
    # What had paid an invoice that is taken back, or a write-off of it.
    RELEASE = "release", "Settlements of a void invoice undone"
    PAYMENT = "payment", "Payment"
    CREDIT_GRANTED = "credit_granted", "Credit granted"
    CREDIT_APPLIED = "credit_applied", "Credit used for invoices"
    REFUND = "refund", "Payment refunded"
    DISPUTE = "dispute", "Payment disputed"
    DISPUTE_WON = "dispute_won", "Dispute won"
    DISPUTE_LOST = "dispute_lost", "Dispute lost"
    WRITE_OFF = "write_off", "Invoice written off"


class ReceivableState(models.TextChoices):
    """The state of what an invoice's payer owes."""

    OPEN = "open", "Open"
    PAID = "paid", "Paid"
    # At least a part was written off, and nothing is open.
    UNCOLLECTIBLE = "uncollectible", "Uncollectible"
    VOID = "void", "Void"


class SettlementKind(models.TextChoices):
    """Why an open amount became smaller or larger."""

    PAYMENT = "payment", "Payment"
    CREDIT = "credit", "Credit"
    CREDIT_NOTE = "credit_note", "Credit note"
    WRITE_OFF = "write_off", "Write-off"
    REFUND = "refund", "Refund"
    DISPUTE = "dispute", "Dispute"
    # Takes an earlier one back.
    REVERSAL = "reversal", "Reversal"


class PaymentMethod(models.TextChoices):
    """How money came in."""

    CARD = "card", "Card"
    TRANSFER = "transfer", "Bank transfer"
    OTHER = "other", "Other"


# What pays an invoice, as the API shows it.
PAID_BY = [*PaymentMethod.choices, ("credit", "Credit")]


class DisputeState(models.TextChoices):
    """The state of a disputed payment."""

    OPEN = "open", "Open"
    WON = "won", "Won"
    LOST = "lost", "Lost"


class AttemptState(models.TextChoices):
    """The state of a payment attempt; `billing/collection/states.py` says how it moves."""

    PREPARED = "prepared", "Prepared"
    SENT = "sent", "Sent"
    # It was sent, and no answer says what became of it.
    UNKNOWN = "unknown", "Not known"
    REQUIRES_ACTION = "requires_action", "Waits for the customer"
    PROCESSING = "processing", "Processing"
    FAILED = "failed", "Failed"
    CANCELED = "canceled", "Canceled"
    SUCCEEDED = "succeeded", "Succeeded"


class AttemptOrigin(models.TextChoices):
    """Why a payment attempt was made."""

    # By the service: at issue and on the days of the calendar. The customer is not there.
    COLLECTION = "collection", "By the service"
    # By the customer, who can authenticate.
    CUSTOMER = "customer", "By the customer"


class FailureKind(models.TextChoices):
    """Why an invoice could not be charged."""

    DECLINED = "declined", "The card was declined"
    NEEDS_AUTHENTICATION = "needs_authentication", "The bank asks the customer to authenticate"
    NO_PAYMENT_METHOD = "no_payment_method", "There is no card"
    # A fault of ours or of Stripe's: no customer is reminded because of it.
    REFUSED = "refused", "Stripe refused the request"
    # By bank transfer: it was due and did not come.
    OVERDUE = "overdue", "It was not paid in time"
    # A refund or a lost dispute: only the customer has it charged again.
    REOPENED = "reopened", "Its payment was given back, or taken back by its bank"


class RefundState(models.TextChoices):
    """The state of a refund that Stripe is asked for."""

    PREPARED = "prepared", "Prepared"
    SENT = "sent", "Sent"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"


class DunningStage(models.TextChoices):
    """How far the calendar after an unpaid invoice is with an organization."""

    PAID = "paid", "Nothing is overdue"
    UNPAID = "unpaid", "Unpaid"
    SUSPENDED = "suspended", "Produce and fetch are refused"
    ASLEEP = "asleep", "Clusters sleep"
    DELETED = "deleted", "Clusters are deleted"


class NoticeKind(models.TextChoices):
    """What a mail about an unpaid invoice says."""

    PAYMENT_FAILED = "payment_failed", "A payment failed"
    OVERDUE = "overdue", "An invoice is overdue"
    ANNOUNCED = "announced", "A step is announced"
    ACTED = "acted", "A step was taken"
    LIFTED = "lifted", "Everything is paid"
    # About what is charged in advance, before a payer has proved that it pays.
    ADVANCE_FAILED = "advance_failed", "A charge in advance failed"
    LIMIT_REACHED = "limit_reached", "Traffic is refused before the first payment"
    # Traffic is refused while a bank decides.
    DISPUTED = "disputed", "Charges are disputed"


class DifferenceKind(models.TextChoices):
    """What does not agree between the ledger, the invoices and Stripe."""

    PAYMENT_UNKNOWN = "payment_unknown", "Stripe has a payment that is not entered"
    PAYMENT_ABSENT = "payment_absent", "A payment is entered that Stripe does not have"
    REFUND_UNKNOWN = "refund_unknown", "Stripe has a refund that is not entered"
    REFUND_ABSENT = "refund_absent", "A refund is entered that Stripe does not have"
    DISPUTE_UNKNOWN = "dispute_unknown", "Stripe has a dispute that is not entered"
    AMOUNT_DIFFERS = "amount_differs", "Stripe has another amount"
    CHARGED_TWICE = "charged_twice", "An invoice was charged twice"
    LEDGER_DIFFERS = "ledger_differs", "The ledger and the receivables disagree"
    CLEARING_DIFFERS = "clearing_differs", "The ledger and Stripe disagree"


class PayerKind(models.TextChoices):
    """What a payer pays with."""

    CARD = "card", "Card"
    ACCOUNT = "account", "Bank account"


class PayerRefusal(models.TextChoices):
    """Why a card pays for no further organization."""

    UNPAID = "unpaid", "It has unpaid invoices in another organization"
    SMALL_DEBTS = "small_debts", "It owes small amounts in many other organizations"
    DISPUTED = "disputed", "A charge of it is disputed"
    UNPROVED = "unproved", "It was never charged, and has reached what is served before that"


class TrialNoticeKind(models.TextChoices):
    """What a mail about a trial says."""

    NEARLY_USED = "nearly_used", "Little of it is left"
    USED_UP = "used_up", "It is used up, and traffic is refused"


class AllowanceKind(models.TextChoices):
    """Why something is free for an organization in a month."""

    POOL = "pool", "A share of its payer's allowance"
    TRIAL = "trial", "Its trial"
