"""Celery tasks of billing. Each calls the service of its name, and takes ids only."""

from __future__ import annotations

from celery import shared_task

from billing.allowances import enforcement
from billing.allowances import notices as trial_notices
from billing.budgets import evaluation, notices, promises
from billing.collection import advances
from billing.collection import tasks as collection_tasks
from billing.receivables import services as receivables
from billing.services import closing, documents, mailing, months
from console.base.common.clock import now
from console.base.common.mail import mail_task
from console.base.common.tenancy import system_scope

# Celery looks for tasks in this module alone.
__all__ = ["collection_tasks"]

# Far longer than a month takes. Where the queue delivers the task again meanwhile, its one worker
# does it afterwards, and it finds nothing to do.
MONTHS_S = 3600


@shared_task(name="billing.evaluate_budgets")
def evaluate_budgets() -> None:
    """Evaluates every budget against what was spent."""
    evaluation.evaluate_budgets()


@shared_task(name="billing.enforce_allowances")
def enforce_allowances() -> None:
    """Refuses the traffic of who used a trial up, or whose card has to prove that it pays."""
    enforcement.enforce_allowances()
    advances.judge_payers()


@mail_task("billing.send_budget_mail")
def send_budget_mail(*, organization_id: str, event_id: str) -> None:
    """Sends the mail of a budget's event; tried again while the mail server is away."""
    notices.send_budget_mail(organization_id=organization_id, event_id=event_id)


@mail_task("billing.send_trial_mail")
def send_trial_mail(*, organization_id: str, notice_id: str) -> None:
    """Sends the mail of a trial of which little or nothing is left."""
    trial_notices.send_trial_mail(organization_id=organization_id, notice_id=notice_id)


@mail_task("billing.send_promise_mail")
def send_promise_mail(*, organization_id: str) -> None:
    """Sends the mail about budgets that were set under the promise before decision 0016."""
    promises.send_promise_mail(organization_id=organization_id)


@shared_task(name="billing.make_document")
def make_document(*, organization_id: str, invoice_id: str) -> None:
    """Makes the PDF of an invoice, then sends its mail, which needs the PDF to be there."""
    documents.make_document(organization_id=organization_id, invoice_id=invoice_id)
    mailing.try_invoice_mail(organization_id=organization_id, invoice_id=invoice_id)


@shared_task(name="billing.sweep_documents")
def sweep_documents() -> None:
    """Makes PDFs that are still to be made, and sends mails that are due, for a while."""
    documents.sweep_documents()
    mailing.sweep_mails()


@shared_task(name="billing.issue_final_invoice")
def issue_final_invoice(*, organization_id: str) -> None:
    """Issues the last invoice of a closed organization, if its usage is rolled up."""
    closing.issue_final_invoice(organization_id=organization_id)


@shared_task(name="billing.issue_final_invoices")
def issue_final_invoices() -> None:
    """Issues the last invoices of closed organizations that are due."""
    closing.issue_final_invoices()


@shared_task(name="billing.issue_due_months", time_limit=MONTHS_S)
def issue_due_months() -> None:
    """Issues the months that are due, and what was left out of others."""
    months.issue_due_months()


@shared_task(name="billing.set_due_dates")
def set_due_dates() -> None:
    """Gives invoices that were issued while nobody collected a day until which they are due."""
    with system_scope():
        receivables.set_due_dates(at=now())
