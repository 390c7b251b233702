"""Every Celery task of this project, and what its arguments name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ORGANIZATION = "organization"


@dataclass(frozen=True)
class KnownTask:
    """A task with arguments. `ids` has the kind of resource that each id argument names."""

    name: str
    ids: Mapping[str, str]
    # The values of its other arguments.
    words: Mapping[str, str] = field(default_factory=dict)
    # Whether it changes something for the tenant of `test_task_walk.py`.
    effect: bool = True

    @property
    def of_organization(self) -> bool:
        """Whether the task belongs to an organization; other tasks belong to a person."""
        return ORGANIZATION in self.ids.values()

    @property
    def names_something(self) -> bool:
        """Whether the task names a resource besides the organization."""
        return len(self.ids) > 1


def task_of_organization(
    name: str, effect: bool = True, words: Mapping[str, str] | None = None, **ids: str
) -> KnownTask:
    """Returns a task that takes an organization's id and the ids of `ids`."""
    return KnownTask(name, {"organization_id": ORGANIZATION, **ids}, words or {}, effect)


TASKS = [
    KnownTask("accounts.send_verification", {"user_id": "users"}),
    KnownTask("accounts.send_password_reset", {"reset_id": "resets"}),
    KnownTask("accounts.send_security_mail", {"user_id": "users"}, {"about": "password_changed"}),
    task_of_organization("accounts.send_invitation", invitation_id="invitations"),
    task_of_organization("accounts.send_closing_mail"),
    task_of_organization(
        "alerts.send_alert_mail",
        words={
            "state": "firing",
            "value": "1",
            "subject": "g",
            "fired_subject": "g",
            "since": "2026-11-20 12:00:00 UTC",
            "until": "",
        },
        alert_id="alerts",
    ),
    task_of_organization("billing.send_budget_mail", event_id="budget-events"),
    task_of_organization("billing.send_trial_mail", notice_id="trial-notices"),
    # No budget is of before decision 0016: `tests/billing/budgets/test_promises.py` follows it.
    task_of_organization("billing.send_promise_mail", effect=False),
    task_of_organization("billing.make_document", invoice_id="invoices"),
    # No cards are taken here: `tests/billing/collection` follows it.
    task_of_organization("billing.collect_organization", effect=False),
    # An event is nobody's before Stripe is asked, of which there is none here.
    KnownTask("billing.handle_stripe_event", {"event_id": "stripe-events"}, effect=False),
    task_of_organization("billing.send_attempt", attempt_id="payment-attempts"),
    task_of_organization("billing.send_refund", refund_id="refund-attempts"),
    task_of_organization("billing.send_dunning_mail", notice_id="dunning-notices"),
    # It does nothing before all usage of the last month is counted.
    task_of_organization("billing.issue_final_invoice", effect=False),
    task_of_organization(
        "incidents.send_incident_mail", words={"state": "open"}, incident_id="incidents"
    ),
    task_of_organization("provisioning.reconcile_cluster", cluster_id="clusters"),
]
# Periodic tasks, which take no arguments and look at every organization.
SWEEPS = {
    "accounts.purge_address_events",
    "accounts.purge_sign_in",
    "alerts.evaluate_alerts",
    "billing.catch_up_events",
    "billing.collect_due",
    "billing.enforce_allowances",
    "billing.evaluate_budgets",
    "billing.issue_due_months",
    "billing.issue_final_invoices",
    "billing.reconcile_due",
    "billing.set_due_dates",
    "billing.sweep_collection",
    "billing.sweep_documents",
    "common.clear_sessions",
    "common.purge_expired",
    "common.sweep_outbox",
    "incidents.sweep_incidents",
    "metering.ingest_usage",
    "metering.roll_up_recent_days",
    "provisioning.end_readings",
    "provisioning.expire_credentials",
    "provisioning.ingest_samples",
    "provisioning.keep_samples",
    "provisioning.sweep_clusters",
}
# A task without arguments that no schedule names: messages of it say that some task waits.
NEXT = {"common.run_waiting"}
