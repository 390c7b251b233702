"""What follows from an unpaid invoice, and how paying lifts it."""

import threading
from datetime import timedelta

import pytest
from django.core import mail
from django.db import connections

from billing.choices import DunningStage
from billing.collection.collecting import collect_due
from billing.collection.dunning import evaluate_dunning, sweep_dunning, what_follows
from billing.collection.notices import sweep_notices
from billing.collection.tasks import sweep_collection
from billing.models import Dunning, DunningNotice, UnpaidInvoice
from billing.receivables.services import write_off
from console.base.accounts.choices import AccountStatus, TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models import Organization, TrafficLimit
from console.base.accounts.services import set_account_status
from console.base.common.clock import unix_ms
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from provisioning.models import Cluster, Operation
from tests.billing.collection.world import DECLINES_LATER, GOOD, transfer
from tests.billing.world import make_cluster


def stage(world):
    with organization_scope(world.id):
        row = Dunning.objects.filter(pk=world.id).first()
    return row.stage if row else "paid"


def consequences(world):
    """The stage, whether traffic is refused, and the account's status."""
    with organization_scope(world.id):
        limits = TrafficLimit.objects.filter(
            organization_id=world.id, source=TrafficLimitSource.UNPAID
        )
        kinds = list(limits.values_list("kind", flat=True))
        status = Organization.objects.get(pk=world.id).account_status
    return stage(world), kinds, status


NOTHING: list[str] = []
RUNNING = ("paid", NOTHING, "active")
UNPAID = ("unpaid", NOTHING, "active")
SUSPENDED = ("suspended", [TrafficLimitKind.REFUSE], "active")
ASLEEP = ("asleep", [TrafficLimitKind.REFUSE], "suspended")


@pytest.fixture
def unpaid(world):
    """An organization whose card was declined."""
    world.give_card(DECLINES_LATER)
    world.invoice = world.issue(1250)
    world.beat()
    return world


def test_a_decline_is_mailed_with_what_follows_and_when(unpaid):
    assert consequences(unpaid) == UNPAID
    (message,) = mail.outbox
    assert message.subject == "$12.50 could not be paid"
    assert message.to == ["owner@acme.example"]
    assert "Your card was declined." in message.body
    assert "again on 5 October 2026" in message.body
    assert "by 18 October 2026 (UTC), your clusters refuse" in message.body
    assert "/billing" in message.body


def test_the_card_is_charged_again_on_days_one_three_and_seven(unpaid):
    began = unpaid.clock.now
    unpaid.live_through(13)
    days = [round((one.created_at - began) / timedelta(days=1), 1) for one in unpaid.attempts()]
    assert days == [0, 1, 3, 7]
    assert [one.number for one in unpaid.attempts()] == [1, 2, 3, 4]


def test_each_step_is_announced_and_then_taken(unpaid):
    unpaid.live_through(13)
    assert consequences(unpaid) == UNPAID
    unpaid.live_through(1)
    assert consequences(unpaid) == SUSPENDED
    unpaid.live_through(16)
    assert consequences(unpaid) == ASLEEP
    unpaid.live_through(30)
    assert stage(unpaid) == DunningStage.DELETED
    assert [subject.split(" unless")[0] for subject in unpaid.subjects()] == [
        *["$12.50 could not be paid"] * 4,
        "Your clusters refuse traffic on 18 October 2026",
        "Your clusters refuse traffic",
        "Your clusters sleep on 3 November 2026",
        "Your clusters sleep",
        "Your clusters are deleted on 3 December 2026",
        "Your clusters are deleted",
    ]


def test_clusters_are_deleted_with_the_days_in_which_they_can_be_restored(unpaid):
    make_cluster(unpaid.id, "cl_aaaaaaaaaaaaaaaaaaaa", "orders")
    unpaid.live_through(61)
    with organization_scope(unpaid.id):
        cluster = Cluster.objects.get()
        entries = AuditEntry.objects.filter(action="organization.forfeit_clusters")
        assert entries.count() == 1
    assert cluster.intent == "deleted"
    assert cluster.deleted_at is not None


def intents(world):
    """What is wanted of each cluster, by name."""
    with organization_scope(world.id):
        return dict(Cluster.objects.order_by("name").values_list("name", "intent"))


def finish_deletions(world):
    """Has the cell have deleted the clusters, as a worker and the keeper do within seconds."""
    with organization_scope(world.id):
        Operation.objects.filter(type="delete_cluster").update(
            state="succeeded", finished_at=world.clock.now
        )


@pytest.fixture
def forfeited(unpaid):
    """Two clusters are deleted as nobody paid; a third one was deleted by its people before."""
    for number, name in enumerate(("orders", "clicks", "tests")):
        make_cluster(unpaid.id, f"cl_{'abc'[number] * 20}", name)
    with organization_scope(unpaid.id):
        Cluster.objects.filter(name="tests").update(
            intent="deleted",
            deleted_at=unpaid.clock.now + timedelta(days=59),
            deletions=[[unix_ms(unpaid.clock.now), None]],
        )
    unpaid.live_through(60)
    assert intents(unpaid) == dict.fromkeys(("clicks", "orders", "tests"), "deleted")
    finish_deletions(unpaid)
    mail.outbox.clear()
    return unpaid


def test_paying_restores_the_clusters_that_were_deleted_for_it(forfeited):
    transfer(forfeited)
    assert consequences(forfeited) == RUNNING
    # What its people deleted themselves stays deleted.
    assert intents(forfeited) == {"clicks": "active", "orders": "active", "tests": "deleted"}
    with organization_scope(forfeited.id):
        assert AuditEntry.objects.filter(action="cluster.undelete").count() == 2
        assert not Cluster.objects.filter(forfeited=True).exists()
    forfeited.work()
    (message,) = mail.outbox
    assert "less than seven days ago are restored" in message.body


def test_what_is_gone_stays_gone_and_keeps_nothing_else_from_being_restored(forfeited):
    with organization_scope(forfeited.id):
        Cluster.objects.filter(name="clicks").update(
            deleted_at=forfeited.clock.now - timedelta(days=8)
        )
    transfer(forfeited)
    assert consequences(forfeited) == RUNNING
    assert intents(forfeited) == {"clicks": "deleted", "orders": "active", "tests": "deleted"}


@pytest.mark.parametrize(("days", "before"), [(2, UNPAID), (15, SUSPENDED), (31, ASLEEP)])
def test_paying_undoes_every_step_in_the_transaction_of_the_payment(unpaid, days, before):
    unpaid.live_through(days)
    assert consequences(unpaid) == before
    mail.outbox.clear()
    transfer(unpaid)
    assert consequences(unpaid) == RUNNING
    unpaid.work()
    assert unpaid.subjects() == ["Everything is paid"]
    unpaid.live_through(70, step_hours=120)
    assert consequences(unpaid) == RUNNING
    assert unpaid.subjects() == ["Everything is paid"]


def test_a_new_card_is_charged_at_once_and_undoes_every_step(unpaid):
    unpaid.live_through(31)
    assert consequences(unpaid) == ASLEEP
    unpaid.give_card(GOOD)
    assert consequences(unpaid) == RUNNING
    assert unpaid.charges_of(unpaid.invoice) == 1


def test_what_is_written_off_has_no_consequences_any_more(unpaid):
    unpaid.live_through(15)
    with organization_scope(unpaid.id):
        write_off(invoice_id=unpaid.invoice, reason="a gift", by="tests")
    assert consequences(unpaid) == RUNNING


def test_a_payment_of_a_part_changes_nothing_but_the_amount(unpaid):
    unpaid.live_through(15)
    transfer(unpaid, 1000)
    assert consequences(unpaid) == SUSPENDED
    transfer(unpaid, 250, "bank 2")
    assert consequences(unpaid) == RUNNING


def test_once_the_older_invoice_is_paid_the_newer_ones_calendar_holds(unpaid):
    unpaid.live_through(10)
    unpaid.issue(700)
    unpaid.live_through(5)
    assert consequences(unpaid) == SUSPENDED
    transfer(unpaid)
    assert consequences(unpaid) == UNPAID
    unpaid.work()
    assert unpaid.subjects()[-1] == "A payment came in, and your clusters serve again"
    unpaid.live_through(10)
    assert consequences(unpaid) == SUSPENDED


def test_without_a_card_the_calendar_begins_at_issue(world):
    world.issue(1250)
    world.beat()
    assert consequences(world) == UNPAID
    assert "no card that we could charge" in mail.outbox[0].body
    assert "charge the card again" not in mail.outbox[0].body
    assert "A card that you add in the console is charged at once." in mail.outbox[0].body
    assert world.attempts() == []


def test_an_amount_below_the_minimum_begins_no_calendar(world):
    world.issue(30)
    world.beat()
    world.live_through(20)
    assert consequences(world) == RUNNING
    assert mail.outbox == []


def test_a_request_that_stripe_refuses_is_our_fault_and_begins_no_calendar(world):
    world.give_card()
    world.issue(10**11)
    world.beat()
    (attempt,) = world.attempts()
    assert (attempt.state, attempt.failure) == ("failed", "refused")
    world.live_through(20)
    assert consequences(world) == RUNNING
    assert mail.outbox == []


def refuse(**_):
    raise ConnectionError("away")


def test_a_mail_server_that_is_away_postpones_the_step(unpaid, monkeypatch):
    unpaid.live_through(10)
    with monkeypatch.context() as away:
        away.setattr("billing.collection.notices.send_mail", refuse)
        for _ in range(10):
            unpaid.clock.now += timedelta(days=1)
            sweep_dunning()
            sweep_notices()
    assert consequences(unpaid) == UNPAID
    unpaid.clock.now += timedelta(hours=1)
    sweep_notices()
    with organization_scope(unpaid.id):
        notice = DunningNotice.objects.get(kind="announced")
    assert notice.sent_at is not None
    assert notice.acts_at == notice.sent_at + timedelta(days=3)
    unpaid.clock.now += timedelta(days=2.9)
    sweep_dunning()
    assert consequences(unpaid) == UNPAID
    unpaid.clock.now += timedelta(days=0.2)
    sweep_dunning()
    assert consequences(unpaid) == SUSPENDED


def test_a_service_that_was_off_announces_before_it_acts(unpaid):
    unpaid.clock.now += timedelta(days=40)
    sweep_collection()
    assert consequences(unpaid) == UNPAID
    unpaid.work()
    sweep_notices()
    unpaid.clock.now += timedelta(days=3, minutes=1)
    sweep_collection()
    assert consequences(unpaid) == SUSPENDED


def test_who_was_suspended_for_another_reason_stays_suspended(unpaid):
    set_account_status(organization_id=unpaid.id, status=AccountStatus.SUSPENDED, reason="abuse")
    unpaid.live_through(31)
    assert stage(unpaid) == DunningStage.ASLEEP
    transfer(unpaid)
    assert consequences(unpaid) == ("paid", [], "suspended")


def test_without_a_collector_nothing_has_consequences(unpaid, collector):
    unpaid.live_through(15)
    collector("none")
    unpaid.clock.now += timedelta(days=2)
    sweep_dunning()
    assert consequences(unpaid) == RUNNING


def test_evaluating_again_changes_nothing(unpaid):
    unpaid.live_through(15)
    with organization_scope(unpaid.id):
        before = (AuditEntry.objects.count(), DunningNotice.objects.count())
    for _ in range(3):
        evaluate_dunning(organization_id=unpaid.id)
    with organization_scope(unpaid.id):
        assert (AuditEntry.objects.count(), DunningNotice.objects.count()) == before


def test_what_follows_is_known_before(unpaid):
    with organization_scope(unpaid.id):
        dunning = Dunning.objects.select_related("announcement").get()
        follows = what_follows(dunning)
        since = UnpaidInvoice.objects.get().since
    assert since is not None
    assert (follows.stage, follows.at) == (DunningStage.SUSPENDED, since + timedelta(days=14))
    assert follows.tries_at == since + timedelta(days=1)


def test_transfers_follow_the_same_calendar_from_the_due_day(world, collector):
    collector("transfer", bank_account=("IBAN DE02",), payment_terms_days=14)
    world.issue(1250)
    world.clock.now += timedelta(days=14)
    collect_due()
    assert stage(world) == "paid"
    world.clock.now += timedelta(days=1)
    collect_due()
    assert consequences(world) == UNPAID
    world.work()
    assert "$12.50 is overdue" in world.subjects()
    collect_due()
    assert len(world.subjects()) == 1
    for _ in range(15):
        world.clock.now += timedelta(days=1)
        sweep_collection()
        world.work()
    assert consequences(world) == SUSPENDED
    assert world.attempts() == []
    transfer(world)
    assert consequences(world) == RUNNING


@pytest.mark.django_db(transaction=True)
def test_a_step_and_a_payment_at_once_leave_the_clusters_running(transactional_db, unpaid_for_real):
    """Whichever takes the organization's lock first: afterwards it is paid, and nothing refused."""
    world = unpaid_for_real
    threads = [
        threading.Thread(target=_close_after, args=(act,))
        for act in (
            lambda: evaluate_dunning(organization_id=world.id),
            lambda: transfer(world),
            lambda: evaluate_dunning(organization_id=world.id),
        )
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert consequences(world) == RUNNING


def _close_after(act):
    try:
        act()
    finally:
        connections.close_all()


@pytest.fixture
def unpaid_for_real(world):
    """An organization whose suspension is announced and due at this moment."""
    world.give_card(DECLINES_LATER)
    world.issue(1250)
    world.beat()
    world.live_through(13)
    world.clock.now += timedelta(days=1)
    return world
