"""Every Celery task of ours, and what its arguments name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ORGANIZATION = "organization"


@dataclass(frozen=True)
class KnownTask:
    """A task that is asked for something. Names of arguments → what they name."""

    name: str
    ids: Mapping[str, str]
    # What else it takes.
    words: Mapping[str, str] = field(default_factory=dict)
    # Something comes of it as the things stand; else its own tests show it.
    effect: bool = True

    @property
    def of_organization(self) -> bool:
        """Tells whether it is asked in one organisation; others are of a person."""
        return ORGANIZATION in self.ids.values()

    @property
    def names_something(self) -> bool:
        """Tells whether it names a thing, besides the organisation."""
        return len(self.ids) > 1


def of(
    name: str, effect: bool = True, words: Mapping[str, str] | None = None, **ids: str
) -> KnownTask:
    """A task of an organisation."""
    return KnownTask(name, {"organization_id": ORGANIZATION, **ids}, words or {}, effect)


TASKS = [
    KnownTask("accounts.send_verification", {"user_id": "users"}),
    KnownTask("accounts.send_password_reset", {"reset_id": "resets"}),
    KnownTask("accounts.send_security_mail", {"user_id": "users"}, {"about": "password_changed"}),
    of("accounts.send_invitation", invitation_id="invitations"),
    of("accounts.send_closing_mail"),
    of(
        "alerts.send_alert_mail",
        words={"state": "firing", "value": "1", "subject": ""},
        alert_id="alerts",
    ),
    of("billing.send_budget_mail", event_id="budget-events"),
    of("billing.make_document", invoice_id="invoices"),
    # Due once all that was used is counted.
    of("billing.issue_final_invoice", effect=False),
    of("incidents.send_incident_mail", words={"state": "open"}, incident_id="incidents"),
    of("provisioning.reconcile_cluster", cluster_id="clusters"),
]
# Periodic ones: they take nothing, and look at every organisation.
SWEEPS = {
    "accounts.purge_address_events",
    "accounts.purge_sign_in",
    "alerts.evaluate_alerts",
    "billing.evaluate_budgets",
    "billing.issue_final_invoices",
    "billing.sweep_documents",
    "common.clear_sessions",
    "common.purge_expired",
    "common.sweep_outbox",
    "incidents.sweep_incidents",
    "metering.ingest_usage",
    "metering.roll_up_recent_days",
    "provisioning.expire_credentials",
    "provisioning.sweep_clusters",
}
