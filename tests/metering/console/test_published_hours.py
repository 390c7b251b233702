"""Hours of published days: read from the files of their runs, by cluster, a page at a time."""

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from console.base.common.concurrency import Count, concurrency
from console.base.common.conf import config
from console.base.common.organization_limits import limit_of_organization
from console.base.common.tenancy import organization_scope, system_scope
from metering.choices import HoursIn
from metering.models import UsageRow
from metering.periods import DAY, FILES_KEPT, HOUR, day_start, to_ms
from metering.services import hour_files, published_hours
from metering.services.hour_files import HoursQuery, PublishedDay, read_hours
from metering.services.run_folders import HOURS, RunFolder, run_store
from tests.console.cases import assert_problem
from tests.metering.console.conftest import NOON
from tests.metering.console.world import Used, publish_day, use_minute

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clock")]
YESTERDAY = NOON.date() - DAY
CL, OTHER_CL = "cl_aaaaaaaaaaaaaaaaaaaa", "cl_bbbbbbbbbbbbbbbbbbbb"
FOREIGN = "cl_cccccccccccccccccccc"
INGRESS, EGRESS = "ingress_bytes", "egress_bytes"
TOPICS = tuple(letter * 32 for letter in "abc")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """What another test read is not remembered, and no page ends early on a slow machine."""
    hour_files.forget_footers()
    monkeypatch.setattr(published_hours, "READ_S", 600.0)
    monkeypatch.setattr(hour_files, "ANSWERS_S", 600.0)


def some_hours(tenant, *, cluster_id=CL, factor=1):
    """An hour for each topic and meter in each of a day's even hours."""
    return [
        Used(tenant.id, cluster_id, meter, factor * (1 + hour), topic_id=topic_id, hour=hour)
        for hour in range(0, 24, 2)
        for meter in (INGRESS, EGRESS)
        for topic_id in TOPICS
    ]


@pytest.fixture
def days(tenant, other_tenant):
    """Three published days of two organizations in the same files."""
    used = [
        *some_hours(tenant),
        *some_hours(tenant, cluster_id=OTHER_CL, factor=100),
        *some_hours(other_tenant, cluster_id=FOREIGN, factor=10**9),
    ]
    return [publish_day(YESTERDAY - number * DAY, used) for number in range(3)]


def hours(client, **query):
    """All items of a query by the hour, page by page, and how many pages there were."""
    items: list[dict[str, Any]] = []
    pages = 0
    cursor: str | None = ""
    while cursor is not None:
        sent = {"granularity": "hour", "limit": 2_000, **query, "cursor": cursor}
        response = client.get("/usage", query=sent)
        assert response.status_code == 200, response.content
        page = response.json()
        items += page["items"]
        cursor = page["next_cursor"]
        pages += 1
    return items, pages


def test_hours_are_read_from_files_and_are_no_rows(api, tenant, other_tenant, days):
    with system_scope():
        assert not UsageRow.objects.filter(granularity="hour").exists()
    items, _ = hours(api())
    assert len(items) == 3 * 2 * len(some_hours(tenant))
    assert {item["cluster_id"] for item in items} == {CL, OTHER_CL}
    assert {item["provisional"] for item in items} == {False}
    # An id is that of a day, of which there are three with two clusters, meters and topics each.
    assert len({item["id"] for item in items}) == 3 * 2 * 2 * len(TOPICS)
    keys = ("window_start", "meter", "cluster_id", "topic_id", "principal")
    places = [tuple(item[name] for name in keys) for item in items]
    assert places == sorted(places)
    foreign, _ = hours(api(other_tenant.key))
    assert {item["cluster_id"] for item in foreign} == {FOREIGN}


def test_a_cluster_of_another_organization_is_in_no_list(api, tenant, days):
    assert hours(api(), cluster_id=FOREIGN)[0] == []
    # Even where its id is asked for by mistake, the files say whose it is.
    query = HoursQuery(
        tenant.id, [FOREIGN], to_ms(day_start(YESTERDAY)), to_ms(day_start(YESTERDAY) + DAY)
    )
    run = days[0]
    day = PublishedDay(run.day, run.pk, run.report["hours"])
    (section,) = read_hours([day], query)
    assert section.rows.num_rows == 0
    assert section.read > 0


def test_only_parts_of_the_cluster_and_the_hours_are_read(api, days, monkeypatch):
    store = hour_files._store(config().usage.rollups)
    spans: list[tuple[str, int, int]] = []

    def read_part(*span):
        spans.append(span)
        return type(store).read_part(store, *span)

    monkeypatch.setattr(store, "read_part", read_part)
    # Each group by itself.
    monkeypatch.setattr(hour_files, "PART_BYTES", 1)
    whole, _ = hours(api())
    of_all = len(spans)
    spans.clear()
    start = day_start(YESTERDAY)
    span = {"from": start.isoformat(), "to": (start + 6 * HOUR).isoformat()}
    items, _ = hours(api(), **span, cluster_id=OTHER_CL)
    ours = [item for item in whole if item["cluster_id"] == OTHER_CL]
    of_day = [item for item in ours if item["window_start"].startswith(str(YESTERDAY))]
    assert items == of_day[:18]
    # The eighteen rows lie in groups of three. Two clusters have 48 of them a day.
    assert (len(spans), of_all) == (6, 3 * 48)


def test_footers_are_read_once(api, days, monkeypatch):
    store = hour_files._store(config().usage.rollups)
    keys: list[str] = []

    def read_end(key, length):
        keys.append(key)
        return type(store).read_end(store, key, length)

    monkeypatch.setattr(store, "read_end", read_end)
    first, _ = hours(api())
    assert len(set(keys)) == len(keys) == 3
    assert hours(api())[0] == first
    assert len(keys) == 3
    # There is memory for one day's footers alone.
    monkeypatch.setattr(hour_files, "FOOTERS_BYTES", 1)
    hour_files.forget_footers()
    assert hours(api())[0] == first
    assert hours(api())[0] == first
    assert len(keys) == 9


@pytest.mark.parametrize("group_by", ["none", "cluster", "topic", "principal", "meter"])
@pytest.mark.parametrize("bound", ["time", "rows", "step"])
def test_a_page_that_ends_early_leads_to_the_rest(api, days, monkeypatch, group_by, bound):
    whole, pages = hours(api(), group_by=group_by)
    assert pages == 1
    if bound == "time":
        monkeypatch.setattr(published_hours, "READ_S", 0.0)
    elif bound == "rows":
        monkeypatch.setattr(published_hours, "ROWS_READ", 100)
    else:
        monkeypatch.setattr(hour_files, "ROWS_AT_ONCE", 20)
        monkeypatch.setattr(published_hours, "ROWS_READ", 1)
    paged, pages = hours(api(), group_by=group_by)
    assert paged == whole
    assert pages >= 3
    assert hours(api(), group_by=group_by, limit=7)[0] == whole


def test_an_early_page_hides_no_minutes_behind_it(api, tenant, days, monkeypatch):
    """Of a day between two published ones there are minutes, and of today."""
    between = YESTERDAY - 4 * DAY
    publish_day(between - DAY, some_hours(tenant))
    for moment in (day_start(between) + 5 * HOUR, NOON - HOUR):
        use_minute(Used(tenant.id, CL, INGRESS, 77), moment)
    whole, _ = hours(api())
    assert [item["quantity"] for item in whole if item["provisional"]] == ["77", "77"]
    monkeypatch.setattr(published_hours, "READ_S", 0.0)
    assert hours(api())[0] == whole
    assert hours(api(), limit=1)[0] == whole


def test_hours_of_runs_from_before_are_rows_beside_those_of_files(api, tenant, days):
    before = YESTERDAY - 3 * DAY
    publish_day(before, some_hours(tenant), hours_in=HoursIn.TABLE)
    items, _ = hours(api())
    old = [item for item in items if item["window_start"].startswith(str(before))]
    assert len(old) == len(some_hours(tenant))
    assert all(item["id"] for item in old)
    assert items[: len(old)] == old
    assert len(items) == len(old) + 6 * len(some_hours(tenant))
    assert hours(api(), limit=5)[0] == items
    with organization_scope(tenant.id):
        assert UsageRow.objects.get(pk=old[0]["id"]).granularity == "hour"


def test_hours_are_those_of_the_run_that_counts(api, tenant, days):
    publish_day(YESTERDAY, [Used(tenant.id, CL, INGRESS, 5, hour=1)])
    span = {"from": day_start(YESTERDAY).isoformat()}
    assert [item["quantity"] for item in hours(api(), **span)[0]] == ["5"]


def test_early_hours_count_for_nobody(api, tenant):
    publish_day(NOON.date(), some_hours(tenant), early=True)
    assert hours(api())[0] == []


def test_hours_that_are_too_old_are_not_looked_for(api, tenant, days, clock):
    run_store().remove("day=")
    clock.now += FILES_KEPT + 2 * DAY
    span = {"from": (day_start(YESTERDAY) - DAY).isoformat(), "to": NOON.isoformat()}
    assert hours(api(), **span)[0] == []
    assert api().get("/usage", query=span).json()["items"]


def test_what_a_folder_has_lost_is_said(api, tenant, days):
    run = days[0]
    run_store().remove(f"{RunFolder(run.day, run.pk).key}/{HOURS}/")
    span = {"from": (day_start(YESTERDAY) - 2 * DAY).isoformat(), "limit": 2_000}
    response = api().get("/usage", query=span | {"granularity": "hour"})
    document = assert_problem(response, 503, "unavailable")
    assert "cannot be read" in document["detail"]
    assert api().get("/usage", query=span).status_code == 200


def test_a_damaged_file_is_said(api, days):
    run = days[0]
    path = Path(RunFolder(run.day, run.pk).path(f"{HOURS}/part-0.parquet"))
    data = bytearray(path.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # One bit in each sixteen bytes: what is read must not be what was written, nor come through.
    for at in range(4, footer, 16):
        data[at] ^= 1
    path.write_bytes(data)
    response = api().get("/usage", query={"granularity": "hour", "limit": 2_000})
    assert_problem(response, 503, "unavailable")


def test_a_store_that_hangs_is_waited_for_a_bounded_time(api, days, monkeypatch):
    store = hour_files._store(config().usage.rollups)
    end = threading.Event()
    monkeypatch.setattr(store, "read_end", lambda *_: end.wait(60))
    monkeypatch.setattr(hour_files, "ANSWERS_S", 0.05)
    try:
        response = api().get("/usage", query={"granularity": "hour"})
        assert_problem(response, 503, "unavailable")
        # Who asks for days, or for hours of today alone, waits for nothing.
        assert api().get("/usage").status_code == 200
        today = {"granularity": "hour", "from": (NOON - timedelta(hours=3)).isoformat()}
        assert api().get("/usage", query=today).status_code == 200
    finally:
        end.set()


def test_an_organization_reads_files_so_many_times_at_once(api, tenant, other_tenant, days):
    limit = limit_of_organization("waiting_requests", tenant.id)
    count = Count("waiting_requests", tenant.id, limit)
    places = [concurrency().take([count], lasts_s=60) for _ in range(limit)]
    query = {"granularity": "hour"}
    assert_problem(api().get("/usage", query=query), 429, "too_many_at_once")
    assert api().get("/usage").status_code == 200
    assert api(other_tenant.key).get("/usage", query=query).status_code == 200
    places[0].give_back()
    assert api().get("/usage", query=query).status_code == 200


def test_a_principal_of_any_characters_is_a_place_of_a_page(api, tenant):
    names = ["User:a", 'User:"\\', "User:\n\t", "User:ü€\u2028", "User:\U0001f600", "User:zz", ""]
    publish_day(YESTERDAY, [Used(tenant.id, CL, INGRESS, 1, principal=name) for name in names])
    items, pages = hours(api(), limit=1)
    assert sorted(item["principal"] or "" for item in items) == sorted(names)
    assert pages == len(names)
    (item,) = hours(api(), principal=names[1])[0]
    assert item["quantity"] == "1"


def test_quantities_of_any_size_are_summed_exactly(api, tenant):
    used = [Used(tenant.id, CL, INGRESS, 2**100, topic_id=topic_id) for topic_id in TOPICS]
    publish_day(YESTERDAY, used)
    (item,) = hours(api(), group_by="meter")[0]
    assert item["quantity"] == str(3 * 2**100)
