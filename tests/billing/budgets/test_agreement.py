"""Each cost leads to the usage that it is the sum of: `/costs` and `/usage` agree to the byte."""

import random
from datetime import UTC, date, datetime, timedelta

import pytest

from console.base.accounts.models import Organization
from console.base.common.tenancy import organization_scope
from metering.periods import DAY, day_start
from tests.billing.budgets.conftest import T0
from tests.metering.console.world import Used, publish_day, use_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("at")]

MONTH = {"from": "2026-11-01", "to": "2026-12-01"}
CLUSTERS = ("cl_aaaaaaaaaaaaaaaaaaaa", "cl_bbbbbbbbbbbbbbbbbbbb")
TOPICS = ("a" * 32, "b" * 32, "")
PRINCIPALS = ("User:cred_aaaaaaaaaaaaaaaaaaaa", "User:o'brien, \u202e&=%2F", "Member:usr_a", "")
METERS = ("ingress_bytes", "egress_bytes", "storage_byte_minutes", "partition_minutes")
# What no amount is for, as the agent writes it: of the service, of internal topics, of brokers.
FREE = (
    {"meter": "egress_bytes", "principal": "User:__freshet"},
    {"meter": "ingress_bytes", "principal": PRINCIPALS[0], "topic_id": "c" * 32},
    {"meter": "storage_byte_minutes", "principal": "", "topic_id": "c" * 32},
    {"meter": "broker_seconds", "principal": "", "topic_id": ""},
)
# Published; the days after them have minutes alone, and two of them have both.
PUBLISHED = [date(2026, 10, 31), *(date(2026, 11, day) for day in (1, 2, 14, 15, 19))]
WITH_MINUTES = [date(2026, 11, day) for day in (15, 19, 20, 21)]


def some_usage(chance, organization_id):
    """A billed use of anything by anybody, and in one of three cases one that is not billed."""
    billed = chance.random() > 1 / 3
    place = {
        "meter": chance.choice(METERS),
        "topic_id": chance.choice(TOPICS),
        "principal": chance.choice(PRINCIPALS),
    }
    return Used(
        organization_id,
        chance.choice(CLUSTERS),
        # Beyond what a double holds, and beyond what is free.
        quantity=chance.randrange(1, 2 ** chance.choice((4, 40, 60))),
        billed=billed,
        hour=chance.randrange(24),
        **(place if billed else chance.choice(FREE)),
    )


@pytest.fixture(params=range(4))
def month(request, tenant, other_tenant, at):
    """A month of usage of each kind, drawn by a number; another organization has as much."""
    chance = random.Random(request.param)
    with organization_scope(tenant.id):
        Organization.objects.update(created_at=datetime(2026, 8, 1, tzinfo=UTC))
    for day in PUBLISHED:
        publish_day(
            day,
            [
                some_usage(chance, organization.id)
                for organization in (tenant, other_tenant)
                for _ in range(40)
            ],
        )
    for day in WITH_MINUTES:
        seen = set()
        for _ in range(40):
            usage = some_usage(chance, tenant.id)
            minute = day_start(day) + timedelta(minutes=chance.randrange(15 * 60))
            place = (usage.cluster_id, usage.topic_id, usage.principal, usage.meter, minute)
            if place not in seen:
                use_minute(usage, minute)
            seen.add(place)
    assert T0.date() == WITH_MINUTES[-1]
    return tenant


@pytest.fixture
def costs(api, month):
    """The month's costs as REST shows them."""
    return api().get("/costs", query={"month": "2026-11"}).json()


@pytest.fixture
def summed(api):
    """Sums all pages of a usage query, by meter."""

    def add_up(**query):
        sums: dict[str, int] = {}
        cursor: str | None = ""
        while cursor is not None:
            answer = api().get("/usage", query=query | {"limit": 2_000, "cursor": cursor})
            assert answer.status_code == 200, answer.content
            for item in answer.json()["items"]:
                sums[item["meter"]] = sums.get(item["meter"], 0) + int(item["quantity"])
            cursor = answer.json()["next_cursor"]
        return sums

    return add_up


def quantities(share):
    """The quantities of a share by meter."""
    return {part["meter"]: int(part["quantity"]) for part in share["meters"]}


@pytest.mark.parametrize("granularity", ["hour", "day", "month"])
@pytest.mark.parametrize("group_by", ["none", "cluster", "topic", "principal", "meter"])
def test_a_meter_leads_to_its_usage_in_every_grouping(costs, summed, granularity, group_by):
    sums = summed(**MONTH, billed="true", granularity=granularity, group_by=group_by)
    assert sums == {part["meter"]: int(part["quantity"]) for part in costs["by_meter"]}
    assert set(sums) == set(METERS)
    # Without the filter there is more, which nobody pays.
    assert summed(**MONTH, granularity=granularity, group_by=group_by) != sums


def test_a_line_leads_to_its_usage(costs, summed):
    assert len(costs["lines"]) == len(METERS) * len(CLUSTERS)
    for line in costs["lines"]:
        named = {"cluster_id": line["cluster_id"], "meter": line["meter"]}
        assert summed(**MONTH, **named, billed="true") == {line["meter"]: int(line["quantity"])}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("by_cluster", ("cluster_id",)),
        ("by_topic", ("cluster_id", "topic_id")),
        ("by_principal", ("cluster_id", "principal")),
    ],
)
def test_a_share_leads_to_its_usage_by_its_own_names(costs, summed, kind, names):
    shares = costs[kind]
    assert len(shares) >= len(CLUSTERS)
    if names[-1] in {"topic_id", "principal"}:
        assert "" in {share[names[-1]] for share in shares}
    for share in shares:
        named = {name: share[name] for name in names}
        assert summed(**MONTH, **named, billed="true") == quantities(share)
        assert share["amount_minor"] == sum(part["amount_minor"] for part in share["meters"])
        for meter, quantity in quantities(share).items():
            assert summed(**MONTH, **named, billed="true", meter=meter) == {meter: quantity}


@pytest.mark.parametrize("granularity", ["hour", "day"])
def test_a_day_leads_to_its_usage(costs, summed, granularity):
    days = [date.fromisoformat(share["day"]) for share in costs["by_day"]]
    assert days == sorted({*PUBLISHED[1:], *WITH_MINUTES})
    for day, share in zip(days, costs["by_day"], strict=True):
        span = {"from": day.isoformat(), "to": (day + DAY).isoformat()}
        assert summed(**span, billed="true", granularity=granularity) == quantities(share)
    whole = sum(share["amount_minor"] for share in costs["by_day"])
    assert whole == sum(line["amount_minor"] for line in costs["lines"]) > 0


def test_what_is_not_billed_is_apart(api, costs, summed):
    billed, free = summed(**MONTH, billed="true"), summed(**MONTH, billed="false")
    everything = summed(**MONTH)
    assert everything == {
        meter: billed.get(meter, 0) + free.get(meter, 0) for meter in {*billed, *free}
    }
    assert free["broker_seconds"] > 0
    items = api().get("/usage", query={**MONTH, "billed": "false", "limit": 2_000}).json()["items"]
    assert {item["billed"] for item in items} == {False}
    assert "User:__freshet" in {item["principal"] for item in items}
