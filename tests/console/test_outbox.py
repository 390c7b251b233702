"""Tasks that run if and only if their transaction commits."""

import threading
from datetime import timedelta

import pytest
from celery import current_app
from django.db import OperationalError as DatabaseAway
from django.db import connections, transaction
from kombu.exceptions import OperationalError
from redis.exceptions import ResponseError

from console.base.common import outbox
from console.base.common.clock import now
from console.base.common.models import OutboxEntry
from console.base.common.tenancy import organization_scope, system_scope

ORGANIZATION = "org_aaaaaaaaaaaaaaaaaaaa"
LIMIT_S = 60


@pytest.fixture
def sent(monkeypatch):
    """The tasks that Celery's broker got: name, arguments and id."""
    tasks = []

    def send_task(name, *, kwargs, task_id, retry):
        assert retry is False
        tasks.append((name, kwargs, task_id))

    monkeypatch.setattr(current_app, "send_task", send_task)
    return tasks


@pytest.fixture
def broker_away(monkeypatch):
    """Celery's broker does not answer."""

    def send_task(*_, **__):
        raise OperationalError

    with monkeypatch.context() as patch:
        patch.setattr(current_app, "send_task", send_task)
        yield patch


def enqueue():
    with organization_scope(ORGANIZATION):
        return outbox.enqueue_task(
            task="x.y", organization_id=ORGANIZATION, arguments={"cluster_id": "cl_x"}
        )


def entries():
    with system_scope():
        return list(OutboxEntry.objects.all())


def make_due():
    with system_scope():
        OutboxEntry.objects.update(due_at=now())


@pytest.mark.django_db(transaction=True)
class TestCommitted:
    def test_a_commit_hands_the_task_over(self, sent):
        with transaction.atomic():
            entry = enqueue()
            assert sent == []
        assert sent == [("x.y", {"cluster_id": "cl_x"}, entry.pk)]
        assert entries() == []

    def test_a_rollback_leaves_nothing(self, sent):
        with transaction.atomic():
            enqueue()
            transaction.set_rollback(True)
        assert (sent, entries()) == ([], [])

    def test_with_the_broker_away_the_sweep_comes_back(self, broker_away, request):
        enqueue()
        (entry,) = entries()
        assert entry.attempts == 1
        assert entry.due_at > now()
        assert outbox.sweep_outbox() == 0
        broker_away.undo()
        sent = request.getfixturevalue("sent")
        make_due()
        assert outbox.sweep_outbox() == 1
        assert len(sent) == 1
        assert entries() == []

    def test_a_database_that_goes_after_the_commit_takes_no_answer_away(self, sent, monkeypatch):
        def fail(_):
            raise DatabaseAway

        with monkeypatch.context() as patch:
            patch.setattr(outbox, "dispatch_entry", fail)
            with transaction.atomic():
                entry = enqueue()
        make_due()
        assert outbox.sweep_outbox() == 1
        assert [task_id for _, _, task_id in sent] == [entry.pk]

    def test_an_entry_that_the_broker_refuses_holds_up_no_other(self, monkeypatch):
        tasks: list[str] = []

        def send_task(_, *, task_id, **__):
            if task_id == refused.pk:
                message = "MISCONF"
                raise ResponseError(message)
            tasks.append(task_id)

        with system_scope():
            refused, other = (
                OutboxEntry.objects.create(
                    organization_id=ORGANIZATION, task="x.y", due_at=now() - timedelta(seconds=age)
                )
                for age in (2, 1)
            )
        monkeypatch.setattr(current_app, "send_task", send_task)
        assert outbox.sweep_outbox() == 1
        assert tasks == [other.pk]
        (remaining,) = entries()
        assert (remaining.pk, remaining.attempts) == (refused.pk, 1)
        assert remaining.due_at > now()

    def test_the_wait_grows_and_has_an_end(self, broker_away):
        enqueue()
        waits = []
        for _ in range(12):
            make_due()
            outbox.sweep_outbox()
            waits.append(round((entries()[0].due_at - now()).total_seconds()))
        assert waits[:4] == [4, 8, 16, 32]
        assert waits[-2:] == [outbox.RETRY_SECONDS_MAX] * 2

    def test_the_sweep_leaves_fresh_entries_to_their_commit(self, sent):
        with system_scope():
            OutboxEntry.objects.create(
                organization_id=ORGANIZATION, task="x.y", due_at=now() + outbox.GRACE
            )
        assert outbox.sweep_outbox() == 0

    def test_two_sweeps_at_once_hand_over_once(self, sent, monkeypatch):
        with system_scope():
            OutboxEntry.objects.create(
                organization_id=ORGANIZATION, task="x.y", due_at=now() - timedelta(seconds=1)
            )
        inside, done = threading.Event(), threading.Event()
        send = current_app.send_task

        def send_slowly(*arguments, **options):
            send(*arguments, **options)
            inside.set()
            assert done.wait(LIMIT_S)

        def sweep():
            try:
                outbox.sweep_outbox()
            finally:
                connections.close_all()

        monkeypatch.setattr(current_app, "send_task", send_slowly)
        thread = threading.Thread(target=sweep)
        thread.start()
        try:
            assert inside.wait(LIMIT_S)
            assert outbox.sweep_outbox() == 0
        finally:
            done.set()
            thread.join(LIMIT_S)
        assert len(sent) == 1
        assert entries() == []


@pytest.mark.django_db
def test_a_task_takes_no_part_in_another_organizations_scope(sent):
    enqueue()
    with organization_scope("org_bbbbbbbbbbbbbbbbbbbb"):
        assert not OutboxEntry.objects.exists()


def test_every_scheduled_task_and_every_enqueued_one_exists(settings):
    current_app.loader.import_default_modules()
    for name, entry in settings.CELERY_BEAT_SCHEDULE.items():
        assert entry["task"] in current_app.tasks, name
