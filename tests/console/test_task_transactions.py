"""The transaction of a task: interrupted while it waits, refused where it cannot be."""

import smtplib
import threading

import pytest
from django.core.mail import EmailMessage
from django.db import connection, connections, transaction

from console.base.accounts.models import ApiKey
from console.base.common import locks, transactions
from console.base.common.away import AWAY_S, HUNG_S, Answering
from console.base.common.concurrency import only_one
from console.base.common.errors import Unavailable
from console.base.common.mail import SmtpBackend
from console.base.common.models import HeldLock
from console.base.common.tenancy import current_scope, organization_scope, system_scope
from console.base.common.transactions import (
    WaitInTransaction,
    commit_so_far,
    current_transaction,
    outside_transaction,
    request_transaction,
    task_transaction,
)
from tests.console.factories import make_tenant
from tests.console.scopes import beside

LIMIT_S = 60


@pytest.fixture
def committed(transactional_db):
    """A tenant whose rows are committed, so that transactions are real."""
    return make_tenant("Acme")


def states():
    """What PostgreSQL says of the other sessions of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return [state for (state,) in cursor.fetchall()]


def names():
    return set(ApiKey.objects.values_list("name", flat=True))


def test_while_a_task_waits_its_connection_is_idle_and_in_no_transaction(committed):
    with task_transaction(), organization_scope(committed.id):
        assert ApiKey.objects.exists()
        before = connection.connection
        with outside_transaction("a test"):
            assert set(beside(states)) == {"idle"}
        # It goes on with the same connection, in another transaction in the same scope.
        assert ApiKey.objects.exists()
        assert connection.connection is before
        assert current_scope() == committed.id
        assert connection.in_atomic_block
    assert connection.connection is before
    assert connection.get_autocommit()
    assert current_scope() == ""


def test_a_task_that_ends_with_a_wait_runs_what_was_to_follow_its_commit(committed):
    ran = []
    with task_transaction(), organization_scope(committed.id):
        assert ApiKey.objects.update(name="new")
        transaction.on_commit(lambda: ran.append(connection.in_atomic_block))
        commit_so_far()
        with outside_transaction("a test"):
            assert ran == []
    assert ran == [False]
    assert connection.get_autocommit()
    assert beside(names) == {"new"}


def test_a_task_goes_on_where_its_connection_was_lost_while_it_waited(committed):
    with task_transaction(), organization_scope(committed.id):
        assert ApiKey.objects.exists()
        kept = connection.connection
        with outside_transaction("a test"):
            kept.close()
        assert ApiKey.objects.exists()
        assert current_scope() == committed.id
    assert current_scope() == ""


def test_a_failure_takes_back_what_was_written_since_the_last_commit(committed):
    def fail():
        with task_transaction(), organization_scope(committed.id):
            ApiKey.objects.update(name="first")
            commit_so_far()
            with outside_transaction("a test"):
                pass
            ApiKey.objects.update(name="second")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert beside(names) == {"first"}


def test_a_task_does_not_wait_behind_what_it_wrote_or_locked(committed):
    with task_transaction(), organization_scope(committed.id):
        ApiKey.objects.update(name="new")
        with pytest.raises(WaitInTransaction), outside_transaction("a test"):
            pass
    with task_transaction(), organization_scope(committed.id):
        list(ApiKey.objects.select_for_update())
        with pytest.raises(WaitInTransaction), outside_transaction("a test"):
            pass


@pytest.mark.parametrize("block", [system_scope, transaction.atomic], ids=["scope", "atomic"])
def test_nothing_waits_in_a_transaction_that_cannot_be_interrupted(db, block):
    with block():
        with pytest.raises(WaitInTransaction), outside_transaction("a test"):
            pass
        with pytest.raises(WaitInTransaction), task_transaction():
            pass
    with outside_transaction("a test"):
        pass


def test_in_production_such_a_wait_is_logged_and_held(db, monkeypatch, caplog):
    monkeypatch.setattr(transactions, "strict", False)
    with system_scope(), outside_transaction("a test"):
        pass
    assert [record.reason for record in caplog.records if "wait_within" in record.message]


def test_within_a_request_it_is_a_part_of_the_request(db):
    with request_transaction() as request:
        with task_transaction() as task:
            assert task is request
        assert current_transaction() is request
    assert current_transaction() is None


def test_a_mail_is_sent_outside_of_a_transaction(committed):
    with task_transaction(), organization_scope(committed.id):
        EmailMessage("Subject", "Text", to=["a@example.com"]).send()
        ApiKey.objects.update(name="new")
        with pytest.raises(WaitInTransaction):
            EmailMessage("Subject", "Text", to=["a@example.com"]).send()


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Away(Exception):
    pass


class Refused(Exception):
    pass


def ask(answering, clock, *, takes_s=0.0, fails=True):
    with answering.asking():
        clock.now += takes_s
        if fails:
            raise Away


def test_what_hung_is_asked_by_one_task_of_all_workers_at_a_time(db):
    clock = Clock()
    # As two processes have it.
    one, other = (
        Answering("a test", failures=(Away,), refusal=Refused, clock=clock) for _ in range(2)
    )
    for answering in (one, other):
        with pytest.raises(Away):
            ask(answering, clock, takes_s=HUNG_S)
        with pytest.raises(Refused):
            ask(answering, clock)
    clock.now += AWAY_S
    with one.asking(), pytest.raises(Refused):
        ask(other, clock)
    # It answered the one. The other finds that out by itself.
    ask(one, clock, fails=False)
    ask(other, clock, fails=False)
    ask(other, clock, fails=False)


def test_what_fails_at_once_is_asked_again(db):
    clock = Clock()
    answering = Answering("a test", failures=(Away,), refusal=Refused, clock=clock)
    for _ in range(2):
        with pytest.raises(Away):
            ask(answering, clock, takes_s=HUNG_S / 2)


def test_a_mail_server_that_hung_is_not_waited_for_by_the_next_mail(db, monkeypatch):
    clock, opened = Clock(), []

    def hang(*arguments, **options):
        opened.append(arguments)
        clock.now += 10
        raise TimeoutError

    monkeypatch.setattr(
        "console.base.common.mail._server_answers",
        Answering("mail", failures=(OSError,), refusal=ConnectionError, clock=clock),
    )
    monkeypatch.setattr(smtplib, "SMTP", hang)
    message = EmailMessage("Subject", "Text", to=["a@example.com"])
    for error in (TimeoutError, ConnectionError):
        with pytest.raises(error):
            SmtpBackend(host="127.0.0.1").send_messages([message])
    assert len(opened) == 1


def test_one_worker_does_what_only_one_does():
    with (
        only_one("a test", lasts_s=LIMIT_S) as first,
        only_one("a test", lasts_s=LIMIT_S) as second,
    ):
        assert first is not None
        assert second is None
        with only_one("another", lasts_s=LIMIT_S) as other:
            assert other is not None
    with only_one("a test", lasts_s=LIMIT_S) as third:
        assert third is not None


def test_a_lock_that_passed_to_another_is_noticed_before_anything_is_written(
    committed, monkeypatch
):
    with task_transaction():
        locks.lock("kind", "one")
        with outside_transaction("a test"):
            pass
        locks.require_held()
    monkeypatch.setattr(locks, "TASK_HELD_S", 0.0)
    with task_transaction():
        locks.lock("kind", "one")
        with outside_transaction("a test"):
            beside(take_and_wait)
        with pytest.raises(Unavailable):
            locks.require_held()


def take_and_wait():
    """Takes the lock and leaves its row, as a worker would that took it and waits now."""
    assert locks.try_lock("kind", "one")
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE common_heldlock SET holder = 'another', until = clock_timestamp() + '1 min'"
        )


def test_while_a_lock_is_confirmed_nobody_takes_it(committed, monkeypatch):
    """Its time may be over: the one that writes has it until its transaction ends."""
    monkeypatch.setattr(locks, "TASK_HELD_S", 0.0)
    done = threading.Event()

    def steal():
        try:
            with task_transaction():
                assert locks.try_lock("kind", "one")
                commit_so_far()
                done.set()
        finally:
            connections.close_all()

    with task_transaction():
        locks.lock("kind", "one")
        with outside_transaction("a test"):
            pass
        locks.require_held()
        thread = threading.Thread(target=steal)
        thread.start()
        while beside(waiting) == 0:
            assert not done.is_set()
    assert done.wait(LIMIT_S)
    thread.join(LIMIT_S)


def waiting():
    """How many sessions wait for a lock of PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return cursor.fetchone()[0]


def test_a_lock_is_renewed_for_as_long_as_the_task_waits(committed, monkeypatch):
    monkeypatch.setattr(locks, "TASK_RENEWED_S", 0.01)
    with task_transaction():
        locks.lock("kind", "one")
        with outside_transaction("a test"):
            before = beside(until)
            while beside(until) == before:
                pass
        locks.require_held()
    assert not HeldLock.objects.exists()


def until():
    return HeldLock.objects.get().until
