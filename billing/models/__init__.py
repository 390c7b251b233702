"""The models of billing, one file for each noun."""

from billing.models.budget import Budget, BudgetEvent
from billing.models.collection import (
    AttemptInvoice,
    CardAccount,
    Dunning,
    DunningNotice,
    MoneyDifference,
    MoneyReconciliation,
    PaymentAttempt,
    RefundAttempt,
    StripeCursor,
    StripeEvent,
    UnpaidInvoice,
)
from billing.models.details import BillingDetails
from billing.models.documents import InvoiceDocument, InvoiceMail
from billing.models.invoice import Invoice, InvoiceLine, UsageBasis
from billing.models.ledger import JournalEntry, Posting
from billing.models.missing import InvoiceMonth, MissingInvoice
from billing.models.numbers import LostNumber, NumberBlock, NumberSeries
from billing.models.payers import AllowanceShare, Payer, PayerOrganization, Trial, TrialNotice
from billing.models.prices import Price, PriceVersion
from billing.models.receivables import (
    Credit,
    Dispute,
    Payment,
    Receivable,
    Refund,
    Settlement,
)

__all__ = [
    "AllowanceShare",
    "AttemptInvoice",
    "BillingDetails",
    "Budget",
    "BudgetEvent",
    "CardAccount",
    "Credit",
    "Dispute",
    "Dunning",
    "DunningNotice",
    "Invoice",
    "InvoiceDocument",
    "InvoiceLine",
    "InvoiceMail",
    "InvoiceMonth",
    "JournalEntry",
    "LostNumber",
    "MissingInvoice",
    "MoneyDifference",
    "MoneyReconciliation",
    "NumberBlock",
    "NumberSeries",
    "Payer",
    "PayerOrganization",
    "Payment",
    "PaymentAttempt",
    "Posting",
    "Price",
    "PriceVersion",
    "Receivable",
    "Refund",
    "RefundAttempt",
    "Settlement",
    "StripeCursor",
    "StripeEvent",
    "Trial",
    "TrialNotice",
    "UnpaidInvoice",
    "UsageBasis",
]
