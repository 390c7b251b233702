"""`GET /usage`: published rows, minutes in front of them, sums of both; and where a row is from."""

import base64
import json
from copy import copy
from datetime import UTC, datetime, timedelta

import pytest

from console.base.common.actor import Role
from console.base.common.tenancy import organization_scope, system_scope
from metering.models import JudgedHour, UsageRow
from metering.periods import DAY, HOUR, HOUR_MS, MINUTE_MS, day_start, to_ms
from metering.services.ingest import ingest_usage
from metering.services.rollup import roll_up
from tests.console.cases import assert_problem
from tests.console.queries import count_queries
from tests.metering.console.conftest import NOON
from tests.metering.console.files import Block, Window
from tests.metering.console.jobs import plain_job
from tests.metering.console.test_rollup import home
from tests.metering.console.world import (
    TOPIC_ID,
    Used,
    make_hours_complete,
    name_topic,
    publish_day,
    use_minute,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
__all__ = ["home"]
TODAY = NOON.date()
YESTERDAY = TODAY - DAY
CL = "cl_aaaaaaaaaaaaaaaaaaaa"
OTHER_CL = "cl_bbbbbbbbbbbbbbbbbbbb"
OTHER_TOPIC = "f" * 32
INGRESS, EGRESS, STORAGE = "ingress_bytes", "egress_bytes", "storage_byte_minutes"


def used(tenant, quantity, meter=INGRESS, **fields):
    return Used(tenant.id, fields.pop("cluster_id", CL), meter, quantity, **fields)


@pytest.fixture
def usage(tenant, other_tenant):
    """Yesterday is published, today has minutes; another organization has both."""
    publish_day(
        YESTERDAY,
        [
            used(tenant, 100, hour=3),
            used(tenant, 20, hour=4),
            used(tenant, 3, hour=4, topic_id=OTHER_TOPIC),
            used(tenant, 7, EGRESS, hour=4, principal="User:b"),
            used(tenant, 1, hour=5, cluster_id=OTHER_CL),
            used(tenant, 9, hour=6, principal="User:__freshet", billed=False),
            used(other_tenant, 1_000_000, cluster_id="cl_cccccccccccccccccccc"),
        ],
    )
    for minute, quantity in [(0, 5), (1, 6), (61, 7)]:
        moment = day_start(TODAY) + timedelta(minutes=minute)
        use_minute(used(tenant, quantity), moment)
        use_minute(used(other_tenant, 1_000_000, cluster_id="cl_cccccccccccccccccccc"), moment)
    # Minutes of a published day stay for a while, and count in no sum.
    use_minute(used(tenant, 100), day_start(YESTERDAY) + 3 * HOUR)
    name_topic(tenant.id, CL, "orders")


def shown(response):
    assert response.status_code == 200, response.content
    return response.json()["items"]


def brief(items, *names):
    return [(*(item[name] for name in names), int(item["quantity"])) for item in items]


def test_days_are_the_published_rows_and_fresh_ones_in_front(api, tenant, usage):
    items = shown(api().get("/usage"))
    with organization_scope(tenant.id):
        rows = UsageRow.objects.filter(granularity="day")
        expected = {row.pk: int(row.quantity) for row in rows}
    assert {item["id"]: int(item["quantity"]) for item in items if item["id"]} == expected
    assert sorted(expected.values()) == [1, 3, 7, 9, 120]
    (fresh,) = [item for item in items if item["id"] is None]
    assert fresh == {
        "id": None,
        "meter": INGRESS,
        "unit": "byte",
        "quantity": "18",
        "window_start": "2026-11-20T00:00:00Z",
        "window_end": "2026-11-21T00:00:00Z",
        "provisional": True,
        "billed": True,
        "cluster_id": CL,
        "topic_id": TOPIC_ID,
        "topic": "orders",
        "principal": "User:cred_aaaaaaaaaaaaaaaaaaaa",
        "principal_name": None,
    }
    assert [item["window_start"] for item in items] == sorted(
        item["window_start"] for item in items
    )


@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        (
            {"granularity": "hour", "group_by": "meter"},
            ("window_start", "billed", "meter", "id"),
            [
                ("2026-11-19T03:00:00Z", True, INGRESS, None, 100),
                ("2026-11-19T04:00:00Z", True, EGRESS, None, 7),
                ("2026-11-19T04:00:00Z", True, INGRESS, None, 23),
                ("2026-11-19T05:00:00Z", True, INGRESS, None, 1),
                ("2026-11-19T06:00:00Z", False, INGRESS, None, 9),
                ("2026-11-20T00:00:00Z", True, INGRESS, None, 11),
                ("2026-11-20T01:00:00Z", True, INGRESS, None, 7),
            ],
        ),
        (
            {"granularity": "minute", "from": "2026-11-20"},
            ("window_start", "window_end", "topic"),
            [
                ("2026-11-20T00:00:00Z", "2026-11-20T00:01:00Z", "orders", 5),
                ("2026-11-20T00:01:00Z", "2026-11-20T00:02:00Z", "orders", 6),
                ("2026-11-20T01:01:00Z", "2026-11-20T01:02:00Z", "orders", 7),
            ],
        ),
        (
            {"granularity": "month", "group_by": "cluster", "meter": INGRESS},
            ("window_start", "window_end", "cluster_id", "billed", "provisional"),
            [
                ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", CL, False, False, 9),
                ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", CL, True, True, 141),
                ("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", OTHER_CL, True, False, 1),
            ],
        ),
        (
            {"granularity": "month", "group_by": "topic", "cluster_id": CL, "meter": INGRESS},
            ("topic_id", "topic", "principal", "billed"),
            [
                (TOPIC_ID, "orders", None, False, 9),
                (TOPIC_ID, "orders", None, True, 138),
                (OTHER_TOPIC, None, None, True, 3),
            ],
        ),
        (
            {"granularity": "month", "group_by": "principal", "meter": EGRESS},
            ("principal", "topic_id", "cluster_id"),
            [("User:b", None, CL, 7)],
        ),
        (
            {"topic_id": OTHER_TOPIC, "from": "2026-11-19T00:00:00Z"},
            ("meter", "provisional"),
            [(INGRESS, False, 3)],
        ),
        ({"principal": "User:b"}, ("meter",), [(EGRESS, 7)]),
        (
            {
                "from": "2026-11-19T05:00+01:00",
                "to": "2026-11-19T05:00:00Z",
                "granularity": "hour",
            },
            ("meter", "topic_id"),
            [(EGRESS, TOPIC_ID, 7), (INGRESS, TOPIC_ID, 20), (INGRESS, OTHER_TOPIC, 3)],
        ),
        ({"cluster_id": "cl_zzzzzzzzzzzzzzzzzzzz"}, (), []),
    ],
)
def test_usage_is_grouped_and_filtered(api, usage, query, names, expected):
    assert brief(shown(api().get("/usage", query=query)), *names) == expected


@pytest.mark.parametrize("granularity", ["minute", "hour", "day", "month"])
@pytest.mark.parametrize("group_by", ["none", "cluster", "topic", "principal", "meter"])
def test_pages_repeat_and_hide_nothing(api, usage, granularity, group_by):
    query = {"granularity": granularity, "group_by": group_by, "from": "2026-11-19"}
    whole = shown(api().get("/usage", query=query))
    assert whole
    seen: list[object] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api().get("/usage", query=query | {"limit": 1, "cursor": cursor}).json()
        seen += page["items"]
        cursor = page["next_cursor"]
    assert seen == whole


def test_a_page_goes_on_behind_a_principal_of_any_characters(api, tenant):
    names = ["User:a", 'User:"\\', "User:\n\t", "User:ü€\u2028", "User:zz"]
    publish_day(YESTERDAY, [used(tenant, 1, principal=name) for name in names])
    seen: list[object] = []
    cursor: str | None = ""
    while cursor is not None:
        page = api().get("/usage", query={"limit": 1, "cursor": cursor}).json()
        seen += [item["principal"] for item in page["items"]]
        cursor = page["next_cursor"]
    assert sorted(map(str, seen)) == sorted(names)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ({"granularity": "week"}, "?granularity"),
        ({"group_by": "organization"}, "?group_by"),
        ({"meter": "coffee"}, "?meter"),
        ({"cluster_id": "x"}, "?cluster_id"),
        ({"topic_id": "orders"}, "?topic_id"),
        ({"from": "yesterday"}, "?from"),
        ({"from": "2026-11-20", "to": "2026-11-20"}, "?from"),
        ({"from": "2027-01-01"}, "?from"),
        ({"from": "1970-01-01"}, "?from"),
        ({"to": "9999-12-31T23:59:59Z"}, "?to"),
        ({"granularity": "minute", "from": "2026-11-01"}, "?from"),
        ({"granularity": "hour", "from": "2026-01-01"}, "?from"),
        ({"limit": 0}, "?limit"),
        ({"limit": 2001}, "?limit"),
        ({"cursor": "?"}, "?cursor"),
        # Of another list; of six values that are no place.
        ({"cursor": "WyIxIl0"}, "?cursor"),
        ({"cursor": "WyIxIiwiMSIsIjEiLCIxIiwiMSIsIjEiXQ"}, "?cursor"),
        ({"principal": "User:\x00"}, "?principal"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(api, query, pointer):
    document = assert_problem(api().get("/usage", query=query), 422, "validation_failed")
    assert [error["pointer"] for error in document["errors"]] == [pointer]


@pytest.mark.parametrize("granularity", ["minute", "hour", "day", "month"])
@pytest.mark.parametrize("place", range(6))
def test_a_forged_cursor_is_refused(api, granularity, place):
    whole = ['"2026-11-20T00:00:00+00:00"', *['"x"'] * 4, "true"]
    forged = ["[" * 2000, '"9999-12-31T23:59:59.999999+00:00"', '"0001-01-01T00:00:00+14:00"']
    for part in forged if place == 0 else forged[:1]:
        parts = [*whole[:place], part, *whole[place + 1 :]]
        cursor = base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
        query = {"cursor": cursor, "granularity": granularity}
        document = assert_problem(api().get("/usage", query=query), 422, "validation_failed")
        assert [error["pointer"] for error in document["errors"]] == ["?cursor"]


def test_quantities_are_whole_numbers_of_any_size(api, tenant):
    publish_day(YESTERDAY, [used(tenant, 2**100, STORAGE)])
    response = api().get("/usage")
    assert shown(response)[0]["quantity"] == str(2**100)
    assert str(2**100).encode() in response.content


def test_every_role_may_look_and_nobody_elses_usage_is_there(api, tenant, other_tenant, usage):
    for role in set(Role) - {Role.MEMBER}:
        assert shown(api(tenant.keys[role]).get("/usage"))
    items = shown(api(other_tenant.key).get("/usage"))
    assert {item["quantity"] for item in items} == {"1000000", "3000000"}


def test_usage_says_up_to_when_nothing_is_missing(api, tenant):
    def until(**query):
        return api().get("/usage", query=query).json()["complete_until"]

    assert until() is None
    morning = datetime(2026, 11, 20, tzinfo=UTC)
    make_hours_complete(tenant.id, CL, morning - DAY, morning + 10 * HOUR)
    assert until() == "2026-11-20T12:00:00Z"
    with system_scope():
        JudgedHour.objects.filter(hour=morning + 9 * HOUR).update(complete=False)
    assert until() == "2026-11-20T09:00:00Z"
    assert until(cluster_id=CL) == "2026-11-20T09:00:00Z"
    assert until(cluster_id=OTHER_CL) is None
    with system_scope():
        JudgedHour.objects.filter(hour=morning).update(complete=False)
    assert until() == "2026-11-20T00:00:00Z"
    # What is missing before the span is not missing in it.
    assert until(**{"from": "2026-11-20T01:00:00Z"}) == "2026-11-20T09:00:00Z"
    assert until(to="2026-11-19T12:00:00Z") == "2026-11-19T12:00:00Z"


def test_a_list_costs_as_many_queries_however_much_there_is(api, tenant, usage):
    def cost():
        return count_queries(lambda: shown(api().get("/usage")))

    before = cost()
    publish_day(YESTERDAY - DAY, [used(tenant, 1, principal=f"User:{n}") for n in range(20)])
    assert cost() == before <= 12


@pytest.fixture
def traced(tenant, agent, home):
    """The tenant's cluster, metered by two files a day, the day rolled up."""
    agent.organization_id, agent.cluster_id = tenant.id, CL
    t = to_ms(NOON)
    manifests = [
        agent.emit(
            NOON + 10 * HOUR * number,
            agent.entry(
                t + number * 10 * HOUR_MS,
                t + (number + 1) * 10 * HOUR_MS,
                sequences=(number * 3, number * 3 + 2),
                storage=(t + number * 10 * HOUR_MS, t + (number + 1) * 10 * HOUR_MS),
            ),
            [Block(number * 3, t + number * 10 * HOUR_MS + 1, (4,))],
            [Window(t + number * 10 * HOUR_MS, t + number * 10 * HOUR_MS + MINUTE_MS, 5)],
        )
        for number in range(2)
    ]
    other = agent.twin("agent-2")
    other.cluster_id = OTHER_CL
    other.emit(NOON, other.entry(t, t + HOUR_MS, sequences=(0, 0)), [Block(0, t)])
    roll_up(day=TODAY, job=plain_job)
    return manifests


def row_of(tenant, **fields):
    with organization_scope(tenant.id):
        return UsageRow.objects.get(cluster_id=CL, **fields)


def hour_from_before(day, start, quantity):
    """A row of an hour, as roll-ups added them when hours were in PostgreSQL."""
    hour = copy(day)
    hour.pk, hour.granularity, hour.quantity = "ur_" + "h" * 20, "hour", quantity
    hour.window_start, hour.window_end = start, start + HOUR
    with organization_scope(day.organization_id):
        hour.save(force_insert=True)
    return hour


def test_a_row_leads_to_its_files_and_lanes(api, tenant, traced):
    row = hour_from_before(row_of(tenant, granularity="day", meter=INGRESS), NOON, 4)
    document = api().get(f"/usage/rows/{row.pk}").json()
    assert (document["quantity"], document["granularity"], document["topic"]) == (
        "4",
        "hour",
        "orders",
    )
    assert document["run"] == {
        "id": row.run.pk,
        "day": "2026-11-20",
        "published_at": document["run"]["published_at"],
        "content_sha256": row.run.content_sha256,
        "current": True,
    }
    (file,) = document["files"]
    assert (file["key"], file["sha256"]) == (traced[0].key, traced[0].sha256)
    assert file["since"] is None
    assert file["lanes"] == [
        {
            "incarnation": 1,
            "first_sequence": 0,
            "last_sequence": 2,
            "files": [],
            "since": "2026-11-20T12:00:00Z",
            "until": "2026-11-20T22:00:00Z",
        }
    ]


def test_an_hour_leads_to_the_row_of_its_day(api, tenant, traced):
    query = {"granularity": "hour", "cluster_id": CL, "meter": INGRESS}
    items = shown(api().get("/usage", query=query))
    assert [(item["window_start"], item["quantity"]) for item in items] == [
        ("2026-11-20T12:00:00Z", "4"),
        ("2026-11-20T22:00:00Z", "4"),
    ]
    assert {item["id"] for item in items} == {row_of(tenant, granularity="day", meter=INGRESS).pk}


def test_a_days_row_leads_to_all_files_of_the_day(api, tenant, traced):
    for meter in (INGRESS, STORAGE):
        row = row_of(tenant, granularity="day", meter=meter)
        document = api().get(f"/usage/rows/{row.pk}").json()
        assert [file["key"] for file in document["files"]] == [manifest.key for manifest in traced]
    assert [file["lanes"] for file in document["files"]] == [[], []]
    assert document["files"][0]["until"] == "2026-11-20T22:00:00Z"


def test_a_row_of_an_older_run_is_there_for_the_invoice_that_names_it(api, tenant, agent, traced):
    row = row_of(tenant, granularity="day", meter=INGRESS)
    t = to_ms(NOON)
    entry = agent.entry(t + HOUR_MS, t + 2 * HOUR_MS, sequences=(2, 2))
    late = agent.twin("agent-3").emit(NOON + DAY, entry, [Block(2, t + 1, (9,))])
    roll_up(day=TODAY, job=plain_job)
    document = api().get(f"/usage/rows/{row.pk}").json()
    assert (document["quantity"], document["run"]["current"]) == ("8", False)
    # A file that its run did not see is not behind it.
    assert late.key not in [file["key"] for file in document["files"]]
    items = shown(api().get("/usage", query={"meter": INGRESS, "cluster_id": CL}))
    assert [item["quantity"] for item in items] == ["17"]


def test_usage_appears_as_soon_as_a_file_is_taken_in(api, tenant, agent, store):
    agent.organization_id, agent.cluster_id = tenant.id, CL
    t = to_ms(NOON - 2 * HOUR)
    agent.emit(NOON, agent.entry(t, t + MINUTE_MS, sequences=(0, 0)), [Block(0, t, (12,))])
    assert shown(api().get("/usage")) == []
    ingest_usage(store=store)
    query = {"granularity": "minute", "group_by": "topic"}
    (item,) = shown(api().get("/usage", query=query))
    assert (item["quantity"], item["topic"], item["window_start"]) == (
        "12",
        "orders",
        "2026-11-20T10:00:00Z",
    )
