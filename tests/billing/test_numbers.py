"""Numbers: none twice and none left out, through rollbacks, deaths and restored databases."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random

import psycopg
import pytest
from django.db import connection, connections

from billing.content import invoice_content
from billing.errors import NumbersDiverged
from billing.models import Invoice, LostNumber, NumberBlock
from billing.pdf.render import content_sha256
from billing.services import numbers, writing
from billing.services.issuing import issue_month
from billing.services.store import document_store
from billing.services.voiding import void_invoice
from console.base.accounts.models import Organization
from console.base.common import locks
from console.base.common.errors import Unavailable
from console.base.common.tenancy import organization_scope, system_scope
from console.base.common.transactions import outside_transaction
from tests.billing import world
from tests.billing.world import MONTH, invoices_of, issue_invoices

LIMIT_S = 60
ISSUERS = 50
# Every fifth.
ROLLED_BACK = 5


def make_organizations(count):
    organizations = [Organization(name=f"Org {number}") for number in range(count)]
    for organization in organizations:
        with organization_scope(organization.pk):
            organization.save(force_insert=True)
        world.sign_up(organization)
    return [organization.pk for organization in organizations]


def issue_one(organization_id):
    return issue_month(month=MONTH, by="tests", organization_id=organization_id)


def taken(organizations):
    with system_scope():
        invoices = Invoice.objects.filter(organization_id__in=organizations)
        return dict(invoices.values_list("organization_id", "number"))


def expected(first, last):
    return [f"FR-2026-{number:06d}" for number in range(first, last + 1)]


def forget_invoices():
    """Takes the database back to before the first invoice, as restoring a backup does."""
    settings = connections["owner"].settings_dict
    with psycopg.connect(
        host=settings["HOST"], dbname=settings["NAME"], user="postgres"
    ) as superuser:
        superuser.execute("SET session_replication_role = replica")
        superuser.execute("TRUNCATE billing_invoice, billing_numberseries CASCADE")


class RolledBack(Exception):
    """Raised to roll a transaction back."""


@pytest.fixture
def published(transactional_db, clock):
    """A month in which nobody used anything."""
    world.publish_month([])


def test_fifty_issuers_of_whom_a_fifth_roll_back(published, monkeypatch):
    organizations = make_organizations(ISSUERS)
    failing = set(organizations[::ROLLED_BACK])
    record, start = writing._record_audit, threading.Barrier(ISSUERS)

    def fail_some(rows, by):
        record(rows, by)
        if {row.organization_id for row in rows} & failing:
            raise RolledBack

    def run(organization_id):
        start.wait()
        try:
            return issue_one(organization_id).issued
        except RolledBack:
            return 0
        finally:
            connection.close()

    monkeypatch.setattr(writing, "_record_audit", fail_some)
    with ThreadPoolExecutor(ISSUERS) as pool:
        issued = list(pool.map(run, organizations))
    succeeded = ISSUERS - len(failing)
    assert sum(issued) == succeeded
    assert sorted(taken(organizations).values()) == expected(1, succeeded)
    monkeypatch.setattr(writing, "_record_audit", record)
    issue_invoices()
    assert sorted(taken(organizations).values()) == expected(1, ISSUERS)


def test_issuers_of_the_same_month_at_once_issue_each_once(published):
    organizations = make_organizations(12)
    start = threading.Barrier(4)

    def run(_):
        start.wait()
        try:
            return issue_month(month=MONTH, by="tests").issued
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(run, range(4))) == 12
    assert sorted(taken(organizations).values()) == expected(1, 12)


def test_what_was_rolled_back_is_taken_by_the_next(published, monkeypatch, documents):
    first, second = make_organizations(2)

    roll_back(monkeypatch, first)
    assert taken([first]) == {}
    issue_one(second)
    assert taken([first, second]) == {second: "FR-2026-000001"}
    kept = sorted(file.name for file in (documents / "v1" / "series=FR-2026").iterdir())
    assert kept == [
        "000000000001-0000.json",
        "000000000001-0000.outcome.json",
        "000000000001-0001.json",
        "000000000001-0001.outcome.json",
    ]


def test_a_restored_database_reuses_no_number(published):
    lost, other, new = make_organizations(3)
    for organization_id in (lost, other):
        issue_one(organization_id)
    before = {organization_id: invoices_of(organization_id)[0] for organization_id in (lost, other)}
    forget_invoices()
    issue_one(new)
    assert taken([new]) == {new: "FR-2026-000003"}
    # The very invoices that had them get their numbers, ids and times again.
    issue_one(other)
    issue_one(lost)
    for organization_id, invoice in before.items():
        (again,) = invoices_of(organization_id)
        assert (again.pk, again.number, again.issued_at) == (
            invoice.pk,
            invoice.number,
            invoice.issued_at,
        )


def test_another_content_gets_another_number_after_a_restore(published):
    lost, other = make_organizations(2)
    issue_one(lost)
    forget_invoices()
    with organization_scope(lost):
        Organization.objects.filter(pk=lost).update(name="Renamed")
    issue_one(lost)
    issue_one(other)
    assert taken([lost, other]) == {lost: "FR-2026-000002", other: "FR-2026-000003"}
    with system_scope():
        assert LostNumber.objects.get().sequence == 1


def leave_unconfirmed(monkeypatch, organization_id):
    """Issues as a process that dies after the commit, so that the block stays unconfirmed."""
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_confirm_on_commit", lambda block_ids, store: None)
        issue_one(organization_id)


def test_who_died_after_the_commit_is_confirmed_by_the_next(published, monkeypatch):
    first, second = make_organizations(2)
    leave_unconfirmed(monkeypatch, first)
    with system_scope():
        assert not Invoice.objects.published().exists()
    issue_one(second)
    assert taken([first, second]) == {first: "FR-2026-000001", second: "FR-2026-000002"}
    with system_scope():
        assert Invoice.objects.published().count() == 2


def test_the_sweep_confirms_too(published, monkeypatch):
    (only,) = make_organizations(1)
    leave_unconfirmed(monkeypatch, only)
    assert numbers.confirm_blocks(document_store()) == 1
    assert numbers.confirm_blocks(document_store()) == 0
    with system_scope():
        assert Invoice.objects.published().count() == 1


def test_what_nobody_was_shown_is_used_anew_after_a_restore(published, monkeypatch):
    first, second = make_organizations(2)
    leave_unconfirmed(monkeypatch, first)
    forget_invoices()
    issue_one(second)
    issue_one(first)
    assert taken([first, second]) == {first: "FR-2026-000002", second: "FR-2026-000001"}


def test_a_second_database_stops_the_one_that_lost(published, monkeypatch):
    first, second = make_organizations(2)
    leave_unconfirmed(monkeypatch, first)
    block = NumberBlock.objects.get()
    assert (
        numbers._settle_block(document_store(), block.key, numbers.ABANDONED) == numbers.ABANDONED
    )
    with pytest.raises(NumbersDiverged):
        issue_one(second)
    with pytest.raises(NumbersDiverged):
        numbers.confirm_blocks(document_store())
    assert taken([second]) == {}
    with system_scope():
        assert not Invoice.objects.published().exists()


def test_a_series_that_diverged_keeps_no_other_from_being_confirmed(published, monkeypatch):
    (only,) = make_organizations(1)
    with monkeypatch.context() as patch:
        patch.setattr(writing, "_confirm_on_commit", lambda block_ids, store: None)
        issue_one(only)
        void_invoice(invoice_id=invoices_of(only)[0].pk, reason="a mistake", by="tests")
    diverged = NumberBlock.objects.get(series="FR-2026")
    numbers._settle_block(document_store(), diverged.key, numbers.ABANDONED)
    with pytest.raises(NumbersDiverged):
        numbers.confirm_blocks(document_store())
    confirmed = NumberBlock.objects.exclude(confirmed_at=None)
    assert [block.series_id for block in confirmed] == ["FRC-2026"]


@pytest.mark.parametrize("seed", range(4))
def test_no_number_that_was_shown_is_ever_another_invoices(published, monkeypatch, seed):
    """A random life of a database: rollbacks, deaths after the commit, restored backups."""
    random = Random(seed)
    organizations = make_organizations(14)
    shown: dict[str | None, str] = {}
    for _ in range(30):
        match random.choice(["issue", "issue", "issue", "roll back", "die", "restore"]):
            case "issue":
                issue_one(random.choice(organizations))
            case "roll back":
                roll_back(monkeypatch, random.choice(organizations))
            case "die":
                leave_unconfirmed(monkeypatch, random.choice(organizations))
            case "restore":
                forget_invoices()
        with system_scope():
            seen = dict(Invoice.objects.published().values_list("number", "organization_id"))
            used = set(Invoice.objects.values_list("sequence", flat=True))
            used |= set(LostNumber.objects.values_list("sequence", flat=True))
        for number, owner in seen.items():
            assert shown.setdefault(number, owner) == owner
        assert used == set(range(1, len(used) + 1))
    assert len(shown) > 3


def roll_back(monkeypatch, organization_id):
    """Issues and rolls back, unless there was nothing to issue."""

    def fail(rows, by):
        raise RolledBack

    with monkeypatch.context() as patch, suppress(RolledBack):
        patch.setattr(writing, "_record_audit", fail)
        issue_one(organization_id)


def test_new_roll_ups_after_a_restore_lead_to_the_same_invoice(published):
    (lost,) = make_organizations(1)
    issue_one(lost)
    (before,) = invoices_of(lost)
    forget_invoices()
    world.publish_month([])
    issue_one(lost)
    (again,) = invoices_of(lost)
    assert (again.pk, again.number) == (before.pk, before.number)
    assert again.basis_id != before.basis_id
    assert content_sha256(invoice_content(again)) == content_sha256(invoice_content(before))


def states():
    """The states of the other sessions of this database."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        return {state for (state,) in cursor.fetchall()}


class Pausing:
    """A store whose first writer waits, after it wrote, until a test lets it go on."""

    def __init__(self, store):
        self.store = store
        self.waits, self.goes_on = threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.store, name)

    def put_new(self, key, data):
        stored = self.store.put_new(key, data)
        if not self.waits.is_set():
            self.waits.set()
            with outside_transaction("a test"):
                assert self.goes_on.wait(LIMIT_S)
        return stored


@pytest.fixture
def pausing(published, monkeypatch):
    """Has the first reservation wait in the store of numbers."""
    store = Pausing(document_store())
    monkeypatch.setattr(writing, "document_store", lambda: store)
    yield store
    store.goes_on.set()


def test_while_the_store_of_numbers_hangs_nobody_is_in_a_transaction(pausing):
    (owner,) = make_organizations(1)
    with ThreadPoolExecutor(1) as pool:
        issued = pool.submit(in_a_thread, issue_one, owner)
        assert pausing.waits.wait(LIMIT_S)
        assert states() <= {"idle"}
        assert taken([owner]) == {}
        pausing.goes_on.set()
        issued.result(LIMIT_S)
    assert taken([owner]) == {owner: "FR-2026-000001"}


def test_an_issuer_that_hung_until_its_lock_passed_to_another_issues_nothing(pausing, monkeypatch):
    hung, other = make_organizations(2)
    monkeypatch.setattr(locks, "TASK_HELD_S", 0.0)
    monkeypatch.setattr(locks, "TASK_RENEWED_S", 3600.0)
    with ThreadPoolExecutor(1) as pool:
        issued = pool.submit(in_a_thread, issue_one, hung)
        assert pausing.waits.wait(LIMIT_S)
        monkeypatch.undo()
        # It abandons what the one that hangs reserved.
        issue_one(other)
        pausing.goes_on.set()
        with pytest.raises(Unavailable):
            issued.result(LIMIT_S)
    assert taken([hung, other]) == {other: "FR-2026-000001"}
    issue_one(hung)
    assert taken([hung]) == {hung: "FR-2026-000002"}
    numbers.confirm_blocks(document_store())


def in_a_thread(work, *arguments):
    """Calls `work` in a thread of its own, whose connection it closes."""
    try:
        return work(*arguments)
    finally:
        connections.close_all()


def test_without_the_store_nothing_is_issued(published, documents):
    (only,) = make_organizations(1)
    documents.parent.joinpath("documents").write_text("in the way")
    with pytest.raises(OSError, match="documents"):
        issue_one(only)
    documents.unlink()
    assert taken([only]) == {}
    issue_invoices()
    assert taken([only]) == {only: "FR-2026-000001"}
