"""A request's transaction is interrupted while it waits, and what it holds outlasts that."""

import threading

import pytest
from django.db import DatabaseError, connection, connections, transaction

from console.base.accounts.models import ApiKey
from console.base.common import locks, transactions
from console.base.common.actor import system_actor
from console.base.common.audit import record_audit
from console.base.common.models import AuditEntry, HeldLock
from console.base.common.tenancy import current_scope, organization_scope
from console.base.common.transactions import (
    WaitInTransaction,
    commit_so_far,
    current_transaction,
    outside_transaction,
    request_transaction,
    require_outside,
)
from tests.console.factories import make_tenant
from tests.console.scopes import beside

LIMIT_S = 60


@pytest.fixture
def committed(transactional_db):
    """A tenant whose rows are committed, so that transactions are real."""
    return make_tenant("Acme")


def rename_keys(name):
    assert ApiKey.objects.update(name=name)


def names_of_keys(tenant):
    with organization_scope(tenant.id):
        return set(ApiKey.objects.values_list("name", flat=True))


def test_while_a_request_waits_it_has_no_connection(committed):
    with request_transaction(), organization_scope(committed.id):
        assert ApiKey.objects.exists()
        before = connection.connection
        assert before is not None
        with outside_transaction("a test"):
            assert connection.connection is None
            assert before.closed
        # The next query is made in another transaction, in the same scope.
        assert ApiKey.objects.exists()
        assert current_scope() == committed.id
        assert connection.in_atomic_block
    assert current_scope() == ""


def test_a_scope_that_ends_while_the_transaction_is_interrupted_has_ended(committed):
    with request_transaction():
        with organization_scope(committed.id):
            assert ApiKey.objects.exists()
            with outside_transaction("a test"):
                pass
        assert current_scope() == ""
        assert not ApiKey.objects.exists()


def test_several_waits_in_a_row_ask_the_database_nothing(committed):
    with request_transaction() as request, organization_scope(committed.id):
        assert ApiKey.objects.exists()
        for _ in range(3):
            with outside_transaction("a test"):
                pass
        assert connection.connection is None
        assert request.is_idle


def test_an_error_takes_back_what_was_written_since_the_last_commit(committed):
    def fail_behind_a_commit():
        with request_transaction(), organization_scope(committed.id):
            rename_keys("kept")
            assert commit_so_far()
            rename_keys("lost")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_behind_a_commit()
    assert names_of_keys(committed) == {"kept"}


def test_a_nested_block_that_begins_behind_a_wait_commits_nothing(committed):
    """Django deletes in a block without a savepoint, which begins before the next query."""

    def fail_behind_a_deletion():
        with request_transaction(), organization_scope(committed.id):
            key = ApiKey.objects.first()
            with outside_transaction("a test"):
                pass
            assert key is not None
            key.delete()
            assert current_scope() == committed.id
            raise ZeroDivisionError

    before = names_of_keys(committed)
    with pytest.raises(ZeroDivisionError):
        fail_behind_a_deletion()
    assert names_of_keys(committed) == before


def test_what_follows_a_wait_is_committed_at_the_end(committed):
    with request_transaction(), organization_scope(committed.id):
        assert ApiKey.objects.exists()
        with outside_transaction("a test"):
            pass
        rename_keys("new")
        assert "new" not in beside(lambda: names_of_keys(committed))
    assert names_of_keys(committed) == {"new"}


def test_what_is_to_be_done_on_commit_is_done_once_at_the_end(committed):
    done = []
    with request_transaction(), organization_scope(committed.id):
        transaction.on_commit(lambda: done.append("first"))
        rename_keys("new")
        commit_so_far()
        transaction.on_commit(lambda: done.append("second"))
        assert done == []
    assert done == ["first", "second"]


def test_after_a_wait_at_the_very_end_the_block_ends_as_well(committed):
    done = []
    with request_transaction(), organization_scope(committed.id):
        transaction.on_commit(lambda: done.append("done"))
        assert ApiKey.objects.exists()
        with outside_transaction("a test"):
            pass
    assert done == ["done"]
    assert not connection.in_atomic_block
    assert names_of_keys(committed)


def test_a_database_that_is_away_after_a_wait_fails_the_request_alone(committed, monkeypatch):
    with request_transaction() as request, organization_scope(committed.id):
        assert ApiKey.objects.exists()
        with outside_transaction("a test"):
            pass
        with monkeypatch.context() as patch:
            patch.setitem(connection.settings_dict, "HOST", "/nowhere")
            with pytest.raises(DatabaseError):
                ApiKey.objects.exists()
        assert connection.connection is None
        assert request.is_idle
        # It is back: the request goes on in its scope.
        assert ApiKey.objects.exists()
    assert not connection.in_atomic_block


WRITES = [
    lambda: rename_keys("new"),
    lambda: list(ApiKey.objects.select_for_update()),
    lambda: list(ApiKey.objects.select_for_update(no_key=True)),
    lambda: ApiKey.objects.all().delete(),
]


@pytest.mark.parametrize("write", WRITES)
def test_nobody_waits_behind_a_write_or_a_locked_row(tenant, write):
    with request_transaction(), organization_scope(tenant.id):
        write()
        with pytest.raises(WaitInTransaction), outside_transaction("a test"):
            pass


def test_nobody_waits_within_a_nested_block(tenant):
    with request_transaction(), organization_scope(tenant.id), transaction.atomic():
        with pytest.raises(WaitInTransaction), outside_transaction("a test"):
            pass
        with pytest.raises(WaitInTransaction):
            commit_so_far()


def test_who_waits_asks_the_database_nothing(tenant):
    with request_transaction(), outside_transaction("it"), pytest.raises(WaitInTransaction):
        ApiKey.objects.exists()


def test_in_production_such_a_fault_is_logged_alone(committed, caplog, monkeypatch):
    monkeypatch.setattr(transactions, "strict", False)
    with request_transaction(), organization_scope(committed.id):
        rename_keys("new")
        with outside_transaction("a test"):
            assert connection.connection is not None
    assert names_of_keys(committed) == {"new"}
    assert [record.reason for record in caplog.records if "wait_within" in record.message]


def test_a_password_is_hashed_outside_of_the_transaction(tenant):
    with request_transaction(), pytest.raises(WaitInTransaction):
        tenant.owner.set_password("another password")
    # Outside of requests, as in a command, there is nothing to hold.
    require_outside("a test")


def test_outside_of_requests_and_transactions_a_wait_is_none(tenant):
    assert current_transaction() is None
    with outside_transaction("a test"), organization_scope(tenant.id):
        assert ApiKey.objects.exists()
    assert not commit_so_far()


def test_deferred_audit_entries_are_written_at_the_end(tenant):
    with request_transaction() as request, organization_scope(tenant.id):
        request.defers_audit = True
        record_audit(
            actor=system_actor(tenant.id), action="a.b", target_type="t", target_id="1", detail={}
        )
        with outside_transaction("a test"):
            pass
        assert not AuditEntry.objects.filter(action="a.b").exists()
        request.write_deferred()
        assert AuditEntry.objects.filter(action="a.b").exists()


def is_free(kind, name):
    return beside(lambda: locks.try_lock(kind, name))


def test_a_lock_of_a_request_outlasts_its_waits(committed):
    with request_transaction():
        locks.lock("kind", "one")
        assert not is_free("kind", "one")
        with outside_transaction("a test"):
            assert not is_free("kind", "one")
            assert is_free("kind", "another")
        # The request has it already.
        locks.lock("kind", "one")
        assert locks.try_lock("kind", "one")
    assert is_free("kind", "one")
    assert not HeldLock.objects.exists()


def test_a_lock_is_free_after_a_request_that_failed(committed):
    def fail_while_it_waits():
        with request_transaction():
            assert locks.try_lock("kind", "one")
            with outside_transaction("a test"):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_while_it_waits()
    assert is_free("kind", "one")


def test_a_lock_of_a_request_that_died_is_free_after_its_time(committed, monkeypatch):
    monkeypatch.setattr(locks, "HELD_S", 0.0)
    with request_transaction():
        locks.lock("kind", "one")
        with outside_transaction("a test"):
            assert beside(HeldLock.objects.count) == 1
            assert is_free("kind", "one")


def test_a_request_waits_for_a_lock_without_a_connection(committed):
    """The other request holds the lock while it waits itself; this one gets it afterwards."""
    held, released, order = threading.Event(), threading.Event(), []

    def hold():
        try:
            with request_transaction():
                locks.lock("kind", "one")
                with outside_transaction("a test"):
                    held.set()
                    assert released.wait(LIMIT_S)
                order.append("first")
        finally:
            connections.close_all()

    def note_wait(seconds):
        assert connection.connection is None
        if "waits" not in order:
            order.append("waits")
        released.set()
        threading.Event().wait(seconds)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(LIMIT_S)
    with pytest.MonkeyPatch.context() as patch, request_transaction():
        patch.setattr("console.base.common.locks.time.sleep", note_wait)
        locks.lock("kind", "one")
        order.append("second")
    thread.join(LIMIT_S)
    assert order == ["waits", "first", "second"]


def test_what_is_locked_briefly_is_free_while_the_request_waits(committed):
    with request_transaction():
        locks.lock_briefly("kind", "one")
        assert not is_free("kind", "one")
        with outside_transaction("a test"):
            assert is_free("kind", "one")
