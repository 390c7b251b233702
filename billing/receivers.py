"""What billing does when something happens in accounts. Rows and outbox entries only."""

from __future__ import annotations

from console.base.common.actor import Actor
from console.base.common.outbox import enqueue_task

FINAL_INVOICE = "billing.issue_final_invoice"


def follow_closing(*, actor: Actor, **_: object) -> None:
    """A closed organisation gets its last invoice; where usage is on its way, the sweep's next."""
    enqueue_task(
        task=FINAL_INVOICE,
        organization_id=actor.organization_id,
        arguments={"organization_id": actor.organization_id},
    )
