"""What a month costs so far: the endpoint."""

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from billing.estimate import SHARES_MAX
from console.base.accounts.choices import TrafficLimitKind, TrafficLimitSource
from console.base.accounts.models import Organization
from console.base.accounts.services import set_traffic_limit
from console.base.common.actor import Role, system_actor
from console.base.common.tenancy import organization_scope
from metering.models import ClusterCoverage, TopicName
from metering.periods import to_ms
from provisioning.clusters.services.clusters import create_cluster
from provisioning.models import Cluster
from tests.billing.budgets.spending import (
    FREE_INGRESS,
    FREE_STORAGE,
    GIB,
    INGRESS_A_CENT,
    STORAGE_A_CENT,
    cluster_of,
    spend_cents,
    spend_more_cents,
    use_bytes,
)
from tests.console import cases

STARTED = datetime(2026, 11, 1, tzinfo=UTC)
MONTH_MINUTES = 30 * 24 * 60


@pytest.fixture
def costs(api, at):
    """Reads the endpoint."""

    def show(**query):
        response = api().get("/costs", query=query)
        assert response.status_code == 200, response.content
        return response.json()

    return show


@pytest.fixture
def old(tenant):
    """Makes the organization older than the month."""
    with organization_scope(tenant.id):
        Organization.objects.update(created_at=STARTED - timedelta(days=100))


def know_until(tenant, moment):
    """Makes usage known up to a moment."""
    with organization_scope(tenant.id):
        ClusterCoverage.objects.create(
            cluster_id=cluster_of(tenant.id),
            organization_id=tenant.id,
            storage_ms=[],
            as_of_ms=to_ms(moment),
        )


def test_nothing_costs_nothing(costs):
    shown = costs()
    assert (shown["month"], shown["currency"], shown["total_minor"]) == ("2026-11", "USD", 0)
    assert (shown["forecast_minor"], shown["lines"], shown["by_topic"]) == (0, [], [])
    assert shown["provisional_until"] is None


def test_a_line_says_what_it_is_made_of(costs, tenant):
    spend_cents(tenant.id, 60)
    use_bytes(tenant.id, 5, meter="broker_seconds", billed=False)
    (line,) = costs()["lines"]
    assert line["meter"] == "ingress_bytes"
    assert line["cluster_id"] == line["cluster"] == cluster_of(tenant.id)
    assert int(line["quantity"]) == FREE_INGRESS + 60 * INGRESS_A_CENT
    assert (int(line["free_quantity"]), line["unit"], line["unit_price"]) == (
        FREE_INGRESS,
        "GiB",
        "0.04",
    )
    assert line["amount_minor"] == 60


def test_clusters_and_topics_have_their_names(costs, tenant):
    with organization_scope(tenant.id):
        made = create_cluster(actor=system_actor(tenant.id), name="orders").cluster
        TopicName.objects.create(
            organization_id=tenant.id, cluster_id=made.pk, topic_id="a" * 32, name="payments"
        )
    use_bytes(tenant.id, 20 * GIB, cluster_id=made.pk, topic_id="a" * 32)
    shown = costs()
    meters = [{"meter": "ingress_bytes", "quantity": str(20 * GIB), "amount_minor": 40}]
    assert shown["by_cluster"] == [
        {
            "cluster_id": made.pk,
            "cluster": "orders",
            "billed_minor": 40,
            "forecast_minor": shown["forecast_minor"],
            "meters": meters,
            "amount_minor": 40,
        }
    ]
    assert shown["by_topic"] == [
        {
            "cluster_id": made.pk,
            "cluster": "orders",
            "topic_id": "a" * 32,
            "topic": "payments",
            "meters": meters,
            "amount_minor": 40,
        }
    ]


def test_every_kind_of_share_sums_to_the_lines(costs, tenant):
    for number in range(7):
        topic, principal = f"{number:032x}", f"User:{number % 3}"
        use_bytes(tenant.id, 10 * GIB + number, topic_id=topic, principal=principal)
        use_bytes(tenant.id, 10 * GIB, meter="egress_bytes", topic_id=topic, principal=principal)
        storage = GIB * MONTH_MINUTES * (number + 1) + number
        use_bytes(tenant.id, storage, meter="storage_byte_minutes", principal="")
    shown = costs()
    expected = sum(line["amount_minor"] for line in shown["lines"])
    assert expected == shown["total_minor"] > 0
    for kind in ("by_meter", "by_cluster", "by_topic", "by_principal", "by_day"):
        assert sum(share["amount_minor"] for share in shown[kind]) == expected, kind
    assert {share["principal"] for share in shown["by_principal"]} == {
        "",
        "User:0",
        "User:1",
        "User:2",
    }


def test_of_very_many_topics_the_rest_is_one_share(costs, tenant):
    for number in range(SHARES_MAX + 2):
        use_bytes(tenant.id, GIB * (number + 1), topic_id=f"{number:032x}")
    shown = costs()
    named, rest = shown["by_topic"][:-1], shown["by_topic"][-1]
    assert len(named) == SHARES_MAX
    assert rest["topic_id"] is None
    assert rest["amount_minor"] > 0
    assert sum(share["amount_minor"] for share in shown["by_topic"]) == shown["total_minor"]
    amounts = [share["amount_minor"] for share in named]
    assert amounts == sorted(amounts, reverse=True)


def test_traffic_is_expected_to_go_on(costs, tenant, at, old):
    noon = STARTED + timedelta(days=15)
    at(noon)
    spend_cents(tenant.id, 60)
    know_until(tenant, noon)
    shown = costs()
    # Twice as much, of which as much is free as before.
    quantity = 2 * (FREE_INGRESS + 60 * INGRESS_A_CENT)
    assert shown["lines"][0]["forecast_quantity"] == str(quantity)
    assert shown["forecast_minor"] == shown["lines"][0]["forecast_minor"] == 160
    assert shown["provisional_until"] == "2026-11-16T00:00:00Z"


HALF_TIME = STARTED + timedelta(days=15)


@pytest.mark.parametrize(
    ("kind", "rate", "expected"),
    [
        (TrafficLimitKind.REFUSE, None, (60, 40)),
        (TrafficLimitKind.REFUSE_PRODUCE, None, (60, 120)),
        # 19.8 GiB more, and not 45 GiB.
        (TrafficLimitKind.THROTTLE, 2**14, (60 + 44, 40 + 35)),
        (None, None, (160, 120)),
    ],
)
def test_traffic_that_is_refused_or_slowed_down_is_expected_to_stay_so(
    costs, tenant, at, old, kind, rate, expected
):
    at(HALF_TIME)
    spend_cents(tenant.id, 60)
    use_bytes(tenant.id, FREE_INGRESS + 40 * INGRESS_A_CENT, meter="egress_bytes")
    know_until(tenant, HALF_TIME)
    if kind is not None:
        limit = {"kind": kind, "reason": "Used up.", "bytes_per_s": rate}
        set_traffic_limit(organization_id=tenant.id, source=TrafficLimitSource.BUDGET, **limit)
    lines = {line["meter"]: line["forecast_minor"] for line in costs()["lines"]}
    assert (lines["ingress_bytes"], lines["egress_bytes"]) == expected


def test_a_cluster_that_serves_nobody_has_no_more_traffic(costs, tenant, at, old):
    at(HALF_TIME)
    with organization_scope(tenant.id):
        made = [
            create_cluster(actor=system_actor(tenant.id), name=name).cluster
            for name in ("served", "suspended")
        ]
        Cluster.objects.filter(pk=made[1].pk).update(suspend_wanted=True)
    for cluster in made:
        use_bytes(tenant.id, 20 * GIB, cluster_id=cluster.pk)
    know_until(tenant, HALF_TIME)
    more = {
        line["cluster"]: int(line["forecast_quantity"]) - int(line["quantity"])
        for line in costs()["lines"]
    }
    assert more == {"served": 20 * GIB, "suspended": 0}


def test_clusters_parts_of_the_bill_sum_to_it_where_a_budget_caps_it(
    costs, tenant, at, make_budget, old
):
    make_budget(100)
    at(HALF_TIME)
    know_until(tenant, HALF_TIME)
    for name, cents in (("a", 90), ("b", 30)):
        use_bytes(tenant.id, (40 + cents) * INGRESS_A_CENT, cluster_id=f"cl_{name * 20}")
    use_bytes(
        tenant.id, FREE_STORAGE + 12 * STORAGE_A_CENT, meter="storage_byte_minutes", principal=""
    )
    shown = costs()
    parts = {share["cluster_id"]: share["billed_minor"] for share in shown["by_cluster"]}
    later = {share["cluster_id"]: share["forecast_minor"] for share in shown["by_cluster"]}
    assert sum(parts.values()) == shown["total_minor"] == 100
    assert sum(later.values()) == shown["forecast_minor"]
    # What is stored is billed in full, and each has its share of the traffic that is left.
    assert parts[cluster_of(tenant.id)] == 12
    assert parts["cl_" + "a" * 20] > parts["cl_" + "b" * 20] > 0
    assert all(later[cluster_id] >= part for cluster_id, part in parts.items())


def test_a_young_organization_is_extrapolated_from_its_own_days(costs, tenant, at):
    with organization_scope(tenant.id):
        Organization.objects.update(created_at=STARTED + timedelta(days=20))
    at(STARTED + timedelta(days=25))
    spend_cents(tenant.id, 60)
    quantity = FREE_INGRESS + 60 * INGRESS_A_CENT
    assert costs()["lines"][0]["forecast_quantity"] == str(2 * quantity)


def test_storage_is_expected_to_stay_as_it_is(costs, tenant, at, old):
    now = STARTED + timedelta(days=20)
    at(now)
    know_until(tenant, now)
    # Much of it was deleted long ago.
    store = partial(use_bytes, tenant.id, meter="storage_byte_minutes", principal="")
    store(1000 * GIB, minute=now - timedelta(days=3))
    for minute in range(60):
        store(3 * GIB, minute=now - timedelta(minutes=minute + 1))
    (line,) = costs()["lines"]
    left = 10 * 24 * 60
    assert int(line["forecast_quantity"]) == int(line["quantity"]) + 3 * GIB * left


def test_a_sleeping_cluster_is_known_by_the_hour_and_one_that_is_gone_costs_no_more(
    costs, tenant, at, old
):
    now = STARTED + timedelta(days=20)
    at(now)
    know_until(tenant, now)
    store = partial(use_bytes, tenant.id, meter="storage_byte_minutes", principal="")
    awake, asleep, gone = (f"cl_{name * 20}" for name in "abc")
    store(GIB, cluster_id=awake, minute=now - timedelta(minutes=1))
    for minute in range(90):
        store(2 * GIB, cluster_id=asleep, minute=now - timedelta(minutes=90 + minute))
        store(4 * GIB, cluster_id=gone, minute=now - timedelta(hours=4, minutes=minute))
    left = 10 * 24 * 60
    forecasts = {
        line["cluster_id"]: int(line["forecast_quantity"]) - int(line["quantity"])
        for line in costs()["lines"]
    }
    assert forecasts == {awake: GIB * left, asleep: 2 * GIB * left, gone: 0}


def test_a_month_that_is_over_is_expected_as_it_was(costs, tenant, at, old):
    spend_cents(tenant.id, 60)
    at(datetime(2026, 12, 3, tzinfo=UTC))
    shown = costs(month="2026-11")
    assert (shown["total_minor"], shown["forecast_minor"]) == (60, 60)
    assert costs()["total_minor"] == 0


def test_what_lies_beyond_a_suspending_budget_is_shown_apart(costs, tenant, make_budget, old):
    make_budget(100)
    spend_cents(tenant.id, 130)
    shown = costs()
    assert (shown["total_minor"], shown["beyond_budget_minor"]) == (100, 30)
    assert shown["forecast_minor"] == 100
    assert shown["lines"][0]["amount_minor"] == 130


@pytest.mark.parametrize(
    "month", ["2026-12", "2026-13", "november", "0000-01", "2019-12", "2026-1"]
)
def test_months_that_cannot_be_are_refused(api, at, month):
    response = api().get("/costs", query={"month": month})
    document = cases.assert_problem(response, 422, "validation_failed")
    assert document["errors"][0]["pointer"] == "?month"


@pytest.mark.parametrize("role", sorted(set(Role) - {Role.MEMBER}))
def test_everybody_of_the_organization_may_see_it(api, tenant, other_tenant, role):
    spend_more_cents(tenant.id, 1_000)
    assert api(tenant.keys[role]).get("/costs").status_code == 200
    assert api(other_tenant.keys[role]).get("/costs").json()["lines"] == []
    cases.assert_problem(api(None).get("/costs"), 401, "not_authenticated")
