"""The audit log's REST endpoints: pages, filters, names of actors, and the export."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from console.base.accounts import services
from console.base.audit import export as exports
from console.base.common.actor import Actor, ActorKind, Role, system_actor
from console.base.common.audit import record_audit
from console.base.common.models import AuditEntry
from console.base.common.tenancy import organization_scope
from tests.console.cases import assert_problem
from tests.console.clients import content_of
from tests.console.queries import count_queries
from tests.console.walk.provisioning import make_cluster

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
PLACES = 7


def entry(tenant, place=0, **fields):
    """Writes an entry whose time is `place` hours after noon."""
    values = {
        "action": "topic.create",
        "actor_kind": ActorKind.SYSTEM,
        "actor_id": "freshet",
        "target_type": "topic",
        "target_id": f"cl_a/{place}",
        "request_id": "-",
        **fields,
    }
    with organization_scope(tenant.id):
        return AuditEntry.objects.create(
            organization_id=tenant.id, created_at=AT + timedelta(hours=place), **values
        )


@pytest.fixture
def entries(tenant, other_tenant):
    """Entries of one organization, the oldest first, beside one of another organization."""
    entry(other_tenant)
    return [entry(tenant, place) for place in range(PLACES)]


def read_log(api, **query):
    response = api().get("/audit-log", query={"to": "2026-11-21T00:00:00Z", **query})
    assert response.status_code == 200, response.content
    return response.json()


def body(response):
    return content_of(response).decode()


def test_newest_come_first_page_by_page(api, entries):
    seen, cursor = [], None
    while True:
        page = read_log(api, limit=3, **({"cursor": cursor} if cursor else {}))
        seen += [item["id"] for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [entry.pk for entry in reversed(entries)]


@pytest.mark.parametrize(
    ("fields", "filters"),
    [
        ({"actor_id": "usr_x", "actor_kind": ActorKind.SESSION}, {"actor": "usr_x"}),
        ({"action": "cluster.create"}, {"action": "cluster.create"}),
        ({"target_type": "cluster"}, {"target_type": "cluster"}),
        ({"target_id": "cl_b"}, {"target_id": "cl_b"}),
    ],
    ids=["actor", "action", "target type", "target"],
)
def test_a_filter_shows_what_matches(api, tenant, entries, fields, filters):
    other = entry(tenant, 3, **fields)
    assert [item["id"] for item in read_log(api, **filters)["items"]] == [other.pk]


def test_a_time_begins_with_its_first_moment_and_ends_before_its_last(api, entries):
    page = read_log(api, **{"from": "2026-11-20T13:00:00Z", "to": "2026-11-20T15:00:00Z"})
    assert [item["id"] for item in page["items"]] == [entries[2].pk, entries[1].pk]


def test_who_it_was_is_named(api, tenant):
    with organization_scope(tenant.id):
        created = services.create_api_key(
            actor=system_actor(tenant.id), name="deploy", role=Role.VIEWER
        )
    cases = [
        (ActorKind.API_KEY, created.key.pk, "deploy", "api"),
        (ActorKind.SESSION, tenant.owner.pk, tenant.owner.email, "console"),
        (ActorKind.API_KEY, "key_gone", "key_gone", "api"),
        (ActorKind.SYSTEM, "freshet", "Freshet", "system"),
        (ActorKind.KAFKA, "User:somebody", "User:somebody", "kafka"),
    ]
    for place, (kind, actor_id, *_) in enumerate(cases):
        entry(tenant, place, actor_kind=kind, actor_id=actor_id)
    shown = [(item["actor"], item["source"]) for item in read_log(api)["items"]]
    assert shown == [
        ({"kind": kind.value, "id": actor_id, "name": name}, source)
        for kind, actor_id, name, source in reversed(cases)
    ]


def test_what_it_was_about_is_named(api, tenant):
    with organization_scope(tenant.id):
        actor = system_actor(tenant.id)
        key = services.create_api_key(actor=actor, name="deploy", role=Role.VIEWER).key
    cluster = make_cluster(tenant)
    renamed = {"name": {"from": "old", "to": "new"}}
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"target_type": "api_key", "target_id": key.pk}, "deploy", ""),
        ({"target_type": "cluster", "target_id": cluster.pk}, cluster.name, ""),
        ({"target_type": "topic", "target_id": f"{cluster.pk}/a/b"}, "a/b", cluster.name),
        (
            {"target_type": "credential", "detail": {"name": "app", "cluster_id": cluster.pk}},
            "app",
            cluster.name,
        ),
        # What is gone is called as the entry says, or by its id.
        ({"target_type": "alert", "target_id": "alr_gone", "detail": {"name": "x"}}, "x", ""),
        ({"target_type": "alert", "target_id": "alr_gone", "detail": renamed}, "new", ""),
        ({"target_type": "alert", "target_id": "alr_gone"}, "alr_gone", ""),
        ({"target_type": "group", "target_id": "cl_gone/g"}, "g", "cl_gone"),
    ]
    for place, (fields, *_) in enumerate(cases):
        entry(tenant, place, **{"target_id": "cre_gone", **fields})
    query = {"to": "2026-11-21T00:00:00Z", "from": "2026-11-20T00:00:00Z"}
    items = api().get("/audit-log", query=query).json()["items"]
    shown = [(item["target"]["name"], item["target"]["cluster"]) for item in reversed(items)]
    assert shown == [(name, cluster) for _, name, cluster in cases]


def test_names_of_another_organization_are_not_shown(api, tenant, other_tenant):
    foreign = make_cluster(other_tenant)
    entry(tenant, target_type="cluster", target_id=foreign.pk)
    (item,) = read_log(api, target_id=foreign.pk)["items"]
    assert item["target"]["name"] == foreign.pk


def test_names_cost_the_same_for_one_entry_and_for_many(api, tenant):
    counts = set()
    for place in range(2, 20):
        entry(tenant, -place, actor_kind=ActorKind.API_KEY, actor_id=f"key_{place}")
        counts.add(count_queries(lambda: read_log(api, to="2026-11-20T12:00:00Z")))
    assert len(counts) == 1


def test_the_file_has_every_entry_oldest_first(api, tenant, entries, monkeypatch):
    monkeypatch.setattr(exports, "PAGE_ENTRIES", 3)
    response = api().get("/audit-log/export", query={"to": "2026-11-21T00:00:00Z"})
    assert response["Content-Type"] == "application/x-ndjson"
    assert "audit-log.jsonl" in response["Content-Disposition"]
    lines = [json.loads(line) for line in body(response).splitlines()]
    assert [line["id"] for line in lines] == [entry.pk for entry in entries]
    unknown = {"name": "0", "cluster": "cl_a"}
    assert lines[0]["target"] == {"type": "topic", "id": "cl_a/0", **unknown}
    assert tenant.id not in json.dumps(lines)


def test_the_file_is_a_table_too(api, tenant, entries):
    entry(tenant, PLACES, detail={"name": 'a "b", c'}, target_id="=1+1")
    query = {"format": "csv", "to": "2026-11-21T00:00:00Z"}
    response = api().get("/audit-log/export", query=query)
    assert response["Content-Type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(body(response))))
    assert [row["id"] for row in rows[:-1]] == [entry.pk for entry in entries]
    assert json.loads(rows[-1]["detail"]) == {"name": 'a "b", c'}
    # A spreadsheet must not run a name as a formula.
    assert rows[-1]["target_id"] == "'=1+1"


def test_a_filtered_file_has_what_matches(api, tenant, entries):
    other = entry(tenant, 2, action="cluster.create")
    response = api().get("/audit-log/export", query={"action": "cluster.create"})
    assert [json.loads(line)["id"] for line in body(response).splitlines()] == [other.pk]


def test_entries_of_one_moment_are_all_in_the_file(api, tenant, monkeypatch):
    monkeypatch.setattr(exports, "PAGE_ENTRIES", 2)
    ids = [entry(tenant).pk for _ in range(5)]
    response = api().get("/audit-log/export", query={"to": "2026-11-21T00:00:00Z"})
    assert [json.loads(line)["id"] for line in body(response).splitlines()] == sorted(ids)


@pytest.mark.parametrize(
    ("path", "query", "pointer"),
    [
        ("/audit-log", {"from": "yesterday"}, "?from"),
        ("/audit-log", {"actor": "x" * 300}, "?actor"),
        ("/audit-log/export", {"format": "xml"}, "?format"),
    ],
)
def test_what_is_no_filter_is_refused(api, path, query, pointer):
    document = assert_problem(api().get(path, query=query), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer


@pytest.mark.parametrize("role", [Role.DEVELOPER, Role.VIEWER, Role.BILLING])
def test_only_who_manages_reads_it(api, tenant, role):
    for path in ("/audit-log", "/audit-log/export"):
        assert_problem(api(tenant.keys[role]).get(path), 403, "permission_denied")


def test_a_long_principal_fits(tenant):
    actor = Actor(ActorKind.KAFKA, "User:" + "x" * 250, tenant.id, Role.VIEWER)
    with organization_scope(tenant.id):
        record_audit(actor=actor, action="a.b", target_type="topic", target_id="t")
