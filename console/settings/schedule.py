"""The schedule of all periodic tasks. Each task has the name of the service function it calls."""

from __future__ import annotations

from typing import Any

# The roll-up runs Spark for minutes, and the invoices of a month take one: they have a worker of
# their own, so that no other task waits behind them.
NIGHTLY_QUEUE = "nightly"
# Calls to addresses that tenants chose: their workers reach nothing else of the service.
OUTBOUND_QUEUE = "outbound"
OUTBOUND_TASK = "outbound.call"
TASK_ROUTES = {
    "metering.roll_up_recent_days": {"queue": NIGHTLY_QUEUE},
    "billing.issue_due_months": {"queue": NIGHTLY_QUEUE},
    "billing.reconcile_due": {"queue": NIGHTLY_QUEUE},
    OUTBOUND_TASK: {"queue": OUTBOUND_QUEUE},
}
BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    "sweep-outbox": {"task": "common.sweep_outbox", "schedule": 10.0},
    "purge-expired": {"task": "common.purge_expired", "schedule": 3600.0},
    "purge-address-events": {"task": "accounts.purge_address_events", "schedule": 3600.0},
    "purge-sign-in": {"task": "accounts.purge_sign_in", "schedule": 3600.0},
    "sweep-clusters": {
        "task": "provisioning.sweep_clusters",
        "schedule": 5.0,
        # Where a sweep takes longer than that, the next ones expire instead of queueing up.
        "options": {"expires": 5.0},
    },
    # A credential is promised to be cut off within five seconds after it expires.
    "expire-credentials": {
        "task": "provisioning.expire_credentials",
        "schedule": 2.0,
        "options": {"expires": 2.0},
    },
    "end-readings": {
        "task": "provisioning.end_readings",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "ingest-usage": {
        "task": "metering.ingest_usage",
        "schedule": 15.0,
        "options": {"expires": 15.0},
    },
    # Groups of a cluster that went to sleep are shown once its last sample is taken in.
    "ingest-samples": {
        "task": "provisioning.ingest_samples",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "keep-samples": {
        "task": "provisioning.keep_samples",
        "schedule": 300.0,
        "options": {"expires": 300.0},
    },
    "evaluate-budgets": {
        "task": "billing.evaluate_budgets",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "enforce-allowances": {
        "task": "billing.enforce_allowances",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    # A day is due at 00:30 UTC. Checking more often lets a machine that was off then catch up.
    "roll-up-recent-days": {
        "task": "metering.roll_up_recent_days",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    # A month is due 72 hours after its end.
    "issue-due-months": {
        "task": "billing.issue_due_months",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "issue-final-invoices": {
        "task": "billing.issue_final_invoices",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "sweep-documents": {
        "task": "billing.sweep_documents",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    # It has something to do once, after the setting `billing.collector` was changed from `none`.
    "set-due-dates": {
        "task": "billing.set_due_dates",
        "schedule": 3600.0,
        "options": {"expires": 3600.0},
    },
    # What is charged at issue is charged within a minute of the first mail about it.
    "collect-due": {
        "task": "billing.collect_due",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "sweep-collection": {
        "task": "billing.sweep_collection",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "catch-up-events": {
        "task": "billing.catch_up_events",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    # A night's comparison is due at 02:00 UTC.
    "reconcile-due": {
        "task": "billing.reconcile_due",
        "schedule": 600.0,
        "options": {"expires": 600.0},
    },
    "evaluate-alerts": {
        "task": "alerts.evaluate_alerts",
        "schedule": 60.0,
        "options": {"expires": 60.0},
    },
    "sweep-incidents": {
        "task": "incidents.sweep_incidents",
        "schedule": 30.0,
        "options": {"expires": 30.0},
    },
    "clear-sessions": {"task": "common.clear_sessions", "schedule": 6 * 3600.0},
}
