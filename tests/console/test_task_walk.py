"""Every Celery task with ids of another organisation, of nothing, and with what is no id at all.

Arguments lie in a queue between two processes: a task believes none of them. Row-level security is
off here, so that each task's own queries are what guards.
"""

import inspect
from contextlib import contextmanager
from datetime import date

import pytest
from django.core import mail
from django.db import transaction
from django.db.utils import DataError, ProgrammingError

from billing.models import Budget, BudgetEvent
from console.base.accounts.models import Organization, PasswordReset, User
from console.base.common import rates
from console.base.common.clock import now
from console.base.common.ids import new_id
from console.celery import app
from console.settings.schedule import BEAT_SCHEDULE
from tests.console.fuzzing.planted import plant
from tests.console.guards import without_row_security
from tests.console.walk.tasks import ORGANIZATION, SWEEPS, TASKS

# What is no id; a queue's JSON can say it.
NO_IDS: list[object] = [None, 7, [], {}, "", "*", "\x00", "x" * 10_000]
# What says so, and is not tried again.
REFUSED = (TypeError, ValueError, AttributeError, DataError, ProgrammingError)


@pytest.fixture(scope="module")
def tenants(django_db_setup, django_db_blocker):
    """Two with one of everything, guarded by querysets alone."""
    del django_db_setup
    with django_db_blocker.unblock(), without_row_security(), transaction.atomic():
        rates.forget()
        yield tuple(with_tasks_due(plant(name, document=False)) for name in ("Acme", "Globex"))
        transaction.set_rollback(True)


def with_tasks_due(planted):
    """Gives the ids of all that tasks are asked for, each of them due."""
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
    planted.ids.update(
        {
            ORGANIZATION: tenant.id,
            "users": tenant.owner.pk,
            "resets": PasswordReset.objects.create(email=tenant.owner.email).pk,
            "budget-events": event.pk,
        }
    )
    return planted


@pytest.fixture(autouse=True)
def worker(monkeypatch):
    """The tasks that a worker has; it makes no real PDF."""
    app.loader.import_default_modules()
    monkeypatch.setattr("billing.services.documents.render_pdf", lambda _: b"%PDF-1.7")


@contextmanager
def taken_back():
    with transaction.atomic():
        try:
            yield
        finally:
            transaction.set_rollback(True)


def state_of(tenants):
    """All that tasks might change, and the mails that they sent."""
    rows = [tenant.rows() for tenant in tenants]
    people = list(User.objects.order_by("pk").values())
    resets = list(PasswordReset.objects.order_by("pk").values())
    metadata = [tenant.metadata() for tenant in tenants]
    return rows, people, resets, metadata, len(mail.outbox)


def run(task, ids):
    """As a worker would; gives the error that ended it, if one did."""
    result = app.tasks[task.name].apply(kwargs={**ids, **task.words})
    assert result.state in {"SUCCESS", "FAILURE"}
    return result.result if result.state == "FAILURE" else None


def absent_like(value):
    return new_id(value.split("_")[0]) if "_" in value else value


def mistaken(task, own, foreign):
    """Arguments of the right kind that name what they must not."""
    right = {name: own.ids[kind] for name, kind in task.ids.items()}
    yield {name: absent_like(value) for name, value in right.items()}
    # Things of one's own that are of another kind.
    yield dict(zip(right, [own.ids["clusters"], own.ids[ORGANIZATION]], strict=False))
    if task.of_organization and task.names_something:
        theirs = {name: foreign.ids[kind] for name, kind in task.ids.items()}
        yield {**theirs, "organization_id": own.ids[ORGANIZATION]}
        yield {**right, "organization_id": foreign.ids[ORGANIZATION]}
        yield {**theirs, "organization_id": absent_like(own.ids[ORGANIZATION])}


def malformed(task, own):
    """Arguments of which one is no id."""
    right = {name: own.ids[kind] for name, kind in task.ids.items()}
    for name in right:
        yield from ({**right, name: wrong} for wrong in NO_IDS)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_another_has_or_nobody_has_stays_as_it_is(tenants, task):
    own, foreign = tenants
    before = state_of(tenants)
    for ids in mistaken(task, own, foreign):
        with taken_back():
            error = run(task, ids)
            assert error is None, (ids, error)
            assert state_of(tenants) == before, ids


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_what_is_no_id_changes_nothing(tenants, task):
    before = state_of(tenants)
    for ids in malformed(task, tenants[0]):
        with taken_back():
            error = run(task, ids)
            assert error is None or isinstance(error, REFUSED), (ids, error)
        # The error of a transaction leaves nothing to look at within it.
        assert state_of(tenants) == before, ids


@pytest.mark.parametrize(
    "task", [task for task in TASKS if task.effect], ids=lambda task: task.name
)
def test_with_its_own_ids_something_comes_of_it(tenants, task):
    own, foreign = tenants
    before, theirs = state_of(tenants), foreign.rows()
    with taken_back():
        assert run(task, {name: own.ids[kind] for name, kind in task.ids.items()}) is None
        assert state_of(tenants) != before
        assert foreign.rows() == theirs


def test_every_task_is_known():
    ours = {name for name in app.tasks if not name.startswith(("celery.", "tests."))}
    assert ours == {task.name for task in TASKS} | SWEEPS
    assert {each["task"] for each in BEAT_SCHEDULE.values()} == SWEEPS


def test_every_task_takes_what_is_known_of_it():
    for task in TASKS:
        assert parameters_of(task.name) == set(task.ids) | set(task.words)
    for name in SWEEPS:
        assert parameters_of(name) == set()


def parameters_of(name):
    return set(inspect.signature(app.tasks[name].run).parameters)
