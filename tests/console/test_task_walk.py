"""Every Celery task with ids of another organization, ids of nothing, and values that are no ids.

Arguments come from a queue, so a task must not trust them. Row-level security is off here, so that
only each task's own queries separate the tenants.
"""

import inspect
from datetime import date

import pytest
from django.core import mail
from django.db.utils import DataError, ProgrammingError

from billing.models import (
    AttemptInvoice,
    Budget,
    BudgetEvent,
    DunningNotice,
    Payment,
    PaymentAttempt,
    RefundAttempt,
    StripeEvent,
    TrialNotice,
)
from console.base.accounts.models import Organization, PasswordReset, User
from console.base.common import rates
from console.base.common.clock import now
from console.base.common.ids import new_id
from console.celery import app
from console.settings.schedule import BEAT_SCHEDULE
from tests.console.fuzzing.planted import plant_tenant
from tests.console.guards import without_row_security
from tests.console.scopes import rolled_back
from tests.console.walk.tasks import NEXT, ORGANIZATION, SWEEPS, TASKS

# Values that are no ids, and that a queue's JSON may have.
NO_IDS: list[object] = [None, 7, [], {}, "", "*", "\x00", "x" * 10_000]
# Errors with which a task may refuse such a value; none of them is retried.
REFUSED = (TypeError, ValueError, AttributeError, DataError, ProgrammingError)


@pytest.fixture(scope="module")
def tenants(django_db_setup, django_db_blocker):
    """Two tenants with one resource of each kind, separated by querysets alone."""
    with django_db_blocker.unblock(), without_row_security(), rolled_back():
        rates.forget_rates()
        yield tuple(
            with_tasks_due(plant_tenant(name, document=False)) for name in ("Acme", "Globex")
        )


def with_tasks_due(planted):
    """Adds the ids that tasks take to a tenant, and has every task find something to do."""
    tenant = planted.tenant
    Organization.objects.filter(pk=tenant.id).update(closed_at=now())
    User.objects.filter(pk=tenant.owner.pk).update(email_verified_at=None)
    event = BudgetEvent.objects.create(
        organization_id=tenant.id,
        budget=Budget.objects.get(organization_id=tenant.id),
        kind="threshold_reached",
        month=date(2026, 9, 1),
        threshold=50,
        spent_minor=60,
        amount_minor=100,
        action="notify",
        generation=1,
    )
    planted.ids.update(collection_due(planted))
    planted.ids.update(
        {
            ORGANIZATION: tenant.id,
            "users": tenant.owner.pk,
            "resets": PasswordReset.objects.create(email=tenant.owner.email).pk,
            "budget-events": event.pk,
            "trial-notices": TrialNotice.objects.create(
                organization_id=tenant.id, kind="used_up"
            ).pk,
        }
    )
    return planted


def collection_due(planted):
    """Adds a charge, a refund, a mail and an event that are to be seen to; returns their ids."""
    tenant, amount = planted.tenant.id, {"amount_minor": 5, "currency": "USD"}
    attempt = PaymentAttempt.objects.create(
        id=new_id("pat"),
        organization_id=tenant,
        first_invoice_id=planted.ids["invoices"],
        number=1,
        key=f"inv:{planted.ids['invoices']}:pay:1",
        origin="collection",
        state="sent",
        customer_id="cus_1",
        method_id="pm_1",
        **amount,
    )
    AttemptInvoice.objects.create(
        organization_id=tenant,
        attempt=attempt,
        invoice_id=planted.ids["invoices"],
        amount_minor=5,
    )
    payment = Payment.objects.create(
        organization_id=tenant,
        method="card",
        external_id=f"pi_{planted.word}",
        unapplied_minor=5,
        received_at=now(),
        entered_by="walk",
        **amount,
    )
    refund = RefundAttempt.objects.create(
        organization_id=tenant,
        payment=payment,
        request_id=f"walk {planted.word}",
        intent_id=payment.external_id,
        reason="walk",
        entered_by="walk",
        **amount,
    )
    notice = DunningNotice.objects.create(organization_id=tenant, kind="lifted")
    event = StripeEvent.objects.create(id=f"evt_{planted.word}", type="unknown", happened_at=now())
    return {
        "payment-attempts": attempt.pk,
        "refund-attempts": refund.pk,
        "dunning-notices": notice.pk,
        "stripe-events": event.pk,
    }


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    """Imports the tasks as a worker does, and replaces the rendering of PDFs."""
    app.loader.import_default_modules()
    monkeypatch.setattr("billing.services.documents.render_pdf", lambda *_: b"%PDF-1.7")


def state_of(tenants):
    """Returns everything that tasks might change, and the number of mails that were sent."""
    rows = [tenant.rows() for tenant in tenants]
    people = list(User.objects.order_by("pk").values())
    resets = list(PasswordReset.objects.order_by("pk").values())
    metadata = [tenant.metadata() for tenant in tenants]
    return rows, people, resets, metadata, len(mail.outbox)


def run_task(task, ids):
    """Runs a task as a worker would; returns the error that ended it, or None."""
    result = app.tasks[task.name].apply(kwargs={**ids, **task.words})
    assert result.state in {"SUCCESS", "FAILURE"}
    return result.result if result.state == "FAILURE" else None


def absent_like(value):
    return new_id(value.split("_")[0]) if "_" in value else value


def mistaken_arguments(task, own, foreign):
    """Yields arguments that are ids, and name resources that the task must not touch."""
    right = {name: own.ids[kind] for name, kind in task.ids.items()}
    yield {name: absent_like(value) for name, value in right.items()}
    # The tenant's own resources, but of another kind.
    yield dict(zip(right, [own.ids["clusters"], own.ids[ORGANIZATION]], strict=False))
    if task.of_organization and task.names_something:
        theirs = {name: foreign.ids[kind] for name, kind in task.ids.items()}
        yield {**theirs, "organization_id": own.ids[ORGANIZATION]}
        yield {**right, "organization_id": foreign.ids[ORGANIZATION]}
        yield {**theirs, "organization_id": absent_like(own.ids[ORGANIZATION])}


def malformed_arguments(task, own):
    """Yields arguments one of which is no id."""
    right = {name: own.ids[kind] for name, kind in task.ids.items()}
    for name in right:
        yield from ({**right, name: wrong} for wrong in NO_IDS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_another_has_or_nobody_has_stays_as_it_is(tenants, task):
    own, foreign = tenants
    before = state_of(tenants)
    for ids in mistaken_arguments(task, own, foreign):
        with rolled_back():
            error = run_task(task, ids)
            assert error is None, (ids, error)
            assert state_of(tenants) == before, ids


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_is_no_id_changes_nothing(tenants, task):
    before = state_of(tenants)
    for ids in malformed_arguments(task, tenants[0]):
        with rolled_back():
            error = run_task(task, ids)
            assert error is None or isinstance(error, REFUSED), (ids, error)
        # Compared outside: an error in a transaction allows no query within it.
        assert state_of(tenants) == before, ids


@pytest.mark.parametrize(
    "task", [task for task in TASKS if task.effect], ids=lambda task: task.name
)
def test_with_its_own_ids_something_comes_of_it(tenants, task):
    own, foreign = tenants
    before, theirs = state_of(tenants), foreign.rows()
    with rolled_back():
        assert run_task(task, {name: own.ids[kind] for name, kind in task.ids.items()}) is None
        assert state_of(tenants) != before
        assert foreign.rows() == theirs


def test_every_task_is_known():
    ours = {name for name in app.tasks if not name.startswith(("celery.", "tests."))}
    assert ours == {task.name for task in TASKS} | SWEEPS | NEXT
    assert {entry["task"] for entry in BEAT_SCHEDULE.values()} == SWEEPS


def test_every_task_takes_what_is_known_of_it():
    for task in TASKS:
        assert parameters_of(task.name) == set(task.ids) | set(task.words)
    for name in SWEEPS | NEXT:
        assert parameters_of(name) == set()


def parameters_of(name):
    return set(inspect.signature(app.tasks[name].run).parameters)
