"""The models of billing, one file for each noun."""

from billing.models.budget import Budget, BudgetEvent
from billing.models.details import BillingDetails
from billing.models.documents import InvoiceDocument, InvoiceMail
from billing.models.invoice import Invoice, InvoiceLine, UsageBasis
from billing.models.ledger import JournalEntry, Posting
from billing.models.missing import InvoiceMonth, MissingInvoice
from billing.models.numbers import LostNumber, NumberBlock, NumberSeries
from billing.models.prices import Price, PriceVersion

__all__ = [
    "BillingDetails",
    "Budget",
    "BudgetEvent",
    "Invoice",
    "InvoiceDocument",
    "InvoiceLine",
    "InvoiceMail",
    "InvoiceMonth",
    "JournalEntry",
    "LostNumber",
    "MissingInvoice",
    "NumberBlock",
    "NumberSeries",
    "Posting",
    "Price",
    "PriceVersion",
    "UsageBasis",
]
