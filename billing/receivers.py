"""Billing's receivers of signals of accounts. They write rows and outbox entries, nothing else."""

from __future__ import annotations

from console.base.common.actor import Actor
from console.base.common.outbox import enqueue_task

FINAL_INVOICE = "billing.issue_final_invoice"


def follow_closing(*, actor: Actor, **_: object) -> None:
    """Enqueues the last invoice of a closed organization.

    Where usage is still on its way, `billing.issue_final_invoices` issues the invoice later.
    """
    enqueue_task(
        task=FINAL_INVOICE,
        organization_id=actor.organization_id,
        arguments={"organization_id": actor.organization_id},
    )
