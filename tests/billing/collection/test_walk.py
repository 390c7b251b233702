"""The acceptance walk: decline, dunning, suspended, paid, running, under faults of the fake."""

import time
from datetime import timedelta

import pytest

from billing.collection import gateway
from billing.collection.reconciliation import reconcile_money
from billing.models import Dunning, MoneyDifference, PaymentAttempt, StripeEvent
from billing.models.collection import LIVE_STATES
from console.base.accounts.models import Organization, TrafficLimit
from console.base.common.tenancy import organization_scope, system_scope
from console.programs.stripe_fake.faults import OF_ANSWERS, OF_WEBHOOKS
from tests.billing.collection.world import DECLINES_LATER, GOOD
from tests.billing.receivables import ledgers

ANSWERS = (
    *(
        "timeout",
        "timeout_after_commit",
        "reset",
        "reset_after_commit",
        "500",
        "500_after_commit",
        "500_kept",
    ),
    *("409", "429", "lock_timeout", "expired_key"),
)
WEBHOOKS = ("drop", "duplicate", "reorder", "hold", "forge", "stale")
# What only comes late, within the time that is waited for it, is like what comes.
LATE = {"delay"}
# Seconds to connect and to wait: the fake answers within milliseconds, or never.
IMPATIENT_S = (5.0, 0.4)


@pytest.fixture(autouse=True)
def impatient(monkeypatch, clock, at_once):
    """Has calls of the fake time out soon. Who asks Stripe waits half a minute.

    What did not answer is asked again after some seconds, of which days pass here in one.
    """
    monkeypatch.setattr(
        gateway._answers(), "_clock", lambda: clock.now.timestamp() + time.monotonic()
    )
    monkeypatch.setattr(gateway, "TIMEOUT_S", IMPATIENT_S)
    # A gateway keeps the time with which it was made.
    gateway._gateway.cache_clear()
    yield
    gateway._gateway.cache_clear()


def state(world):
    with organization_scope(world.id):
        stage = Dunning.objects.filter(pk=world.id).values_list("stage", flat=True).first()
        refused = TrafficLimit.objects.filter(kind="refuse").exists()
        return stage, refused, Organization.objects.get(pk=world.id).account_status


def live_until(world, stage, day):
    """Lives until a stage begins, which it does on a day after the first failure, or the next."""
    for _ in range(40):
        world.live_through(1)
        if state(world)[0] == stage:
            with organization_scope(world.id):
                since = Dunning.objects.get(pk=world.id).since
            if since is not None:
                assert timedelta(days=day) <= world.clock.now - since < timedelta(days=day + 2)
            return
    message = f"it never was {stage}"
    raise AssertionError(message)


def walk(world, answers, webhooks):
    """Lives through two months in which calls fail, and webhooks do what they do."""

    def break_things():
        for kind in answers:
            world.fault(kind, count=2, path="/v1/payment_intents*")
            world.fault(kind, count=1)
        for kind in webhooks:
            world.webhook_fault(kind)

    world.give_card(DECLINES_LATER)
    break_things()
    invoices = [world.issue(1250)]
    live_until(world, "unpaid", 0)
    assert state(world) == ("unpaid", False, "active")
    break_things()
    live_until(world, "suspended", 14)
    assert state(world) == ("suspended", True, "active")
    invoices.append(world.issue(40))
    live_until(world, "asleep", 30)
    assert state(world) == ("asleep", True, "suspended")
    assert [world.charges_of(one) for one in invoices] == [0, 0]
    world.heal()
    world.give_card(GOOD)
    break_things()
    live_until(world, "paid", 0)
    assert state(world) == ("paid", False, "active")
    invoices.append(world.issue(900))
    world.live_through(3)
    world.heal()
    world.control("POST", "deliveries/release")
    world.live_through(3)
    return invoices


def require_clean(world, invoices):
    """Each invoice was charged once, nothing is stuck, and the comparison finds nothing."""
    assert [world.charges_of(one) for one in invoices] == [1] * len(invoices)
    assert {world.receivable(one).state for one in invoices} == {"paid"}
    assert state(world) == ("paid", False, "active")
    with system_scope():
        assert not PaymentAttempt.objects.filter(state__in=LIVE_STATES).exists()
    assert not StripeEvent.objects.filter(handled_at=None).exists()
    world.move(hours=1)
    run = reconcile_money()
    assert (run.reason, run.differences) == ("", 0)
    with system_scope():
        assert not MoneyDifference.objects.filter(ended_at=None).exists()
    ledgers.check_now()
    ledgers.require_ledger_agrees(world.id)


def test_every_fault_of_the_fake_is_walked_through():
    assert {*ANSWERS, *LATE} == OF_ANSWERS
    assert {*WEBHOOKS, *LATE} == OF_WEBHOOKS


def test_from_a_decline_to_running_again(world):
    require_clean(world, walk(world, (), ()))


def test_the_same_with_every_fault_of_the_fake(world):
    require_clean(world, walk(world, ANSWERS, ("duplicate", "reorder", "forge")))


@pytest.mark.full
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("webhook", WEBHOOKS)
def test_the_same_with_each_pair_of_faults(world, answer, webhook):
    require_clean(world, walk(world, (answer,), (webhook,)))
