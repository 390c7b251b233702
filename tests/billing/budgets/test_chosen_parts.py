"""Of very many topics and principals, those that are named are chosen once a minute."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from rest_framework import serializers

from billing.api.costs import (
    ClusterShareSerializer,
    CostLineSerializer,
    MeterPartSerializer,
    PrincipalShareSerializer,
    TopicShareSerializer,
)
from billing.estimate import SHARES_MAX, estimate_month
from console.base.common.tenancy import organization_scope
from metering.services import month_usage
from metering.services.choosing import CHOICES_MAX, CHOSEN_FOR_S, ChosenParts
from tests.billing.budgets.conftest import T0
from tests.billing.budgets.spending import GIB, cluster_of, use_bytes
from tests.metering.console.world import Used, publish_day

MONTH = date(2026, 11, 1)
# The topic with this number has the least of those that are named at first.
LAST_NAMED = 2


@pytest.fixture
def seconds(monkeypatch):
    """A clock of seconds, by which choices grow old: `seconds[0]`."""
    passed = [0.0]
    monkeypatch.setattr(month_usage, "chosen_parts", ChosenParts(clock=lambda: passed[0]))
    return passed


@pytest.fixture
def topics(tenant, at, seconds):
    """Reads each named topic's bytes; all others' have the name None. They sum to the total."""
    for number in range(SHARES_MAX + LAST_NAMED):
        use_bytes(tenant.id, GIB * (number + 1), topic_id=topic(number))

    def show():
        with organization_scope(tenant.id):
            shown = estimate_month(tenant.id, MONTH)
        (line,) = shown.lines
        quantities = {share.topic_id: share.meters[0].quantity for share in shown.by_topic}
        assert sum(quantities.values()) == line.rated.quantity
        assert sum(share.amount_minor for share in shown.by_topic) == shown.total_minor
        return quantities

    return show


def topic(number):
    return f"{number:032x}"


def test_the_choice_holds_a_minute_and_quantities_are_those_of_now(topics, tenant, seconds):
    first = topics()
    assert len(first) == SHARES_MAX + 1
    assert (first[topic(LAST_NAMED)], first[None]) == (3 * GIB, 3 * GIB)
    # Another one has the most now, and one that is named has more.
    use_bytes(tenant.id, 500 * GIB, topic_id=topic(0), principal="User:b")
    use_bytes(tenant.id, GIB, topic_id=topic(LAST_NAMED), principal="User:b")
    seconds[0] += CHOSEN_FOR_S
    assert topics() == first | {topic(LAST_NAMED): 4 * GIB, None: 503 * GIB}
    seconds[0] += 1
    again = topics()
    assert (again[topic(0)], again[None]) == (501 * GIB, 2 * GIB + 4 * GIB)
    assert topic(LAST_NAMED) not in again or again[topic(LAST_NAMED)] == 4 * GIB


def test_what_is_gone_leaves_its_place_to_another(topics, tenant):
    assert topic(0) not in topics()
    rows = [
        Used(tenant.id, cluster_of(tenant.id), "ingress_bytes", GIB * (number + 1), topic(number))
        for number in range(SHARES_MAX + LAST_NAMED - 1)
    ]
    # The greatest one had nothing, as the published day says.
    publish_day(T0.date(), rows)
    shown = topics()
    assert topic(SHARES_MAX + LAST_NAMED - 1) not in shown
    assert (shown[topic(1)], shown[None]) == (2 * GIB, GIB)


def test_few_are_chosen_anew_each_time(tenant, at, seconds):
    for number in range(2):
        use_bytes(tenant.id, 20 * GIB, topic_id=topic(number))
        with organization_scope(tenant.id):
            shown = estimate_month(tenant.id, MONTH)
        assert len(shown.by_topic) == number + 1


def test_choices_of_one_do_not_serve_another(topics, other_tenant):
    topics()
    use_bytes(other_tenant.id, 20 * GIB, topic_id="f" * 32)
    with organization_scope(other_tenant.id):
        (share,) = estimate_month(other_tenant.id, MONTH).by_topic
    assert (share.topic_id, share.meters[0].quantity) == ("f" * 32, 20 * GIB)


def test_choices_that_nobody_asks_for_are_forgotten():
    kept = ChosenParts()
    for number in range(CHOICES_MAX):
        kept.keep((str(number), MONTH, 1, ()), [("topic", "cl", str(number))])
    assert kept.get(("0", MONTH, 1, ())) == [("topic", "cl", "0")]
    kept.keep(("new", MONTH, 1, ()), [])
    assert kept.get(("1", MONTH, 1, ())) is None
    assert kept.get(("0", MONTH, 1, ())) is not None
    assert len(kept) == CHOICES_MAX
    kept.forget()
    assert len(kept) == 0


def test_shares_are_written_as_the_framework_writes_them(topics, tenant):
    use_bytes(tenant.id, 70 * GIB, meter="egress_bytes", principal="")
    with organization_scope(tenant.id):
        shown = estimate_month(tenant.id, MONTH)
    kinds: dict[type[serializers.Serializer[Any]], Sequence[object]] = {
        CostLineSerializer: shown.lines,
        MeterPartSerializer: shown.by_meter,
        ClusterShareSerializer: shown.by_cluster,
        TopicShareSerializer: [shown.by_topic[0], shown.by_topic[-1]],
        PrincipalShareSerializer: shown.by_principal,
    }
    for kind, items in kinds.items():
        assert items
        for item in items:
            written = kind().to_representation(item)
            assert written == serializers.Serializer.to_representation(kind(), item)
            assert list(written) == list(kind().fields)
