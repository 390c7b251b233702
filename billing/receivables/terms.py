"""How an invoice is to be paid, as its PDF and its mail say it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from billing.models import Invoice, Receivable
from billing.money import readable_amount
from billing.receivables.references import readable_reference
from console.base.common.conf import config


@dataclass(frozen=True, slots=True)
class Terms:
    """What is to be paid, how, and until when. Texts as people read them.

    `payable` is empty where nothing is left to pay; `credit` where no credit was used. Without an
    `account` the invoice is charged to a card, where there is one.
    """

    total: str
    credit: str
    payable: str
    due_on: str
    account: tuple[str, ...]
    reference: str

    def as_json(self) -> dict[str, Any]:
        """The terms as JSON has them."""
        return asdict(self)

    def text(self) -> str:
        """The terms in lines of plain text, for a mail."""
        lines = [f"{self.credit} of it is paid by your credit."] if self.credit else []
        if not self.payable:
            lines.append("Nothing is left to pay.")
        elif self.account:
            lines += [
                f"Please transfer {self.payable} by {self.due_on} to",
                *(
                    "",
                    *(f"  {line}" for line in self.account),
                    f"  Reference: {self.reference}",
                    "",
                ),
                "With the reference we know what it pays.",
            ]
        else:
            lines.append(
                f"{self.payable} is to be paid by {self.due_on}; it is charged to your card, if you"
                " have given one."
            )
        return "\n".join(lines)


def terms_of(invoice: Invoice) -> Terms | None:
    """The terms as they were at issue; None where nobody collects the invoice.

    What was paid since then does not change them, nor does a later due date of the settings.
    """
    settings = config().billing
    receivable = Receivable.objects.filter(pk=invoice.pk).first()
    if receivable is None or receivable.due_on is None or settings.collector == "none":
        return None
    credit = receivable.amount_minor - receivable.payable_minor
    by_transfer = settings.collector == "transfer"

    def shown(amount_minor: int) -> str:
        return readable_amount(amount_minor, receivable.currency) if amount_minor else ""

    return Terms(
        total=shown(receivable.amount_minor),
        credit=shown(credit),
        payable=shown(receivable.payable_minor),
        due_on=f"{receivable.due_on:%-d %B %Y}",
        account=settings.bank_account if by_transfer else (),
        reference=readable_reference(receivable.reference) if by_transfer else "",
    )
