"""Restoring deleted topics, attaching orphaned ones, and deleting records."""

from console.base.common.models import AuditEntry
from provisioning import kafka
from provisioning.cells import cluster_store
from provisioning.kafka import NewRecord
from tests.console import cases
from tests.provisioning.control.world import access_of, running_broker


def test_a_deleted_topic_comes_back_with_all_it_had(api, path, in_tenant):
    body = {"name": "t", "partitions": 3, "configs": {"retention.ms": "5"}}
    made = api().post(f"{path}/topics", body).json()
    assert api().get(f"{path}/deleted-topics").json() == {"items": [], "next_cursor": None}
    assert api().delete(f"{path}/topics/t").status_code == 204
    (deleted,) = api().get(f"{path}/deleted-topics").json()["items"]
    assert (deleted["id"], deleted["name"], deleted["partitions"]) == (made["id"], "t", 3)
    assert deleted["deleted_at"] < deleted["restorable_until"]
    item = f"{path}/deleted-topics/{deleted['id']}"
    assert api().get(item).json() == deleted
    back = api().post(f"{item}:undelete")
    assert back.status_code == 200, back.content
    assert {**back.json(), "config_details": None} == {**made, "config_details": None}
    assert api().get(f"{path}/deleted-topics").json()["items"] == []
    cases.assert_problem(api().post(f"{item}:undelete"), 404, "not_found")
    actions = AuditEntry.objects.filter(target_type="topic").values_list("action", flat=True)
    assert {"topic.delete", "topic.undelete"} <= set(actions)


def test_a_name_that_was_taken_asks_for_another(api, path):
    first = api().post(f"{path}/topics", {"name": "t"}).json()
    api().delete(f"{path}/topics/t")
    api().post(f"{path}/topics", {"name": "t"})
    item = f"{path}/deleted-topics/{first['id']}"
    cases.assert_problem(api().post(f"{item}:undelete"), 409, "name_taken")
    document = cases.assert_problem(api().post(f"{item}:undelete", {"name": "a b"}), 422)
    assert document["errors"][0]["pointer"] == "/name"
    back = api().post(f"{item}:undelete", {"name": "t-old"}).json()
    assert (back["id"], back["name"]) == (first["id"], "t-old")


def test_validate_only_shows_what_would_come_back(api, path):
    query = {"validate_only": "true"}
    made = api().post(f"{path}/topics", {"name": "t", "partitions": 2}).json()
    api().delete(f"{path}/topics/t")
    item = f"{path}/deleted-topics/{made['id']}"
    for name, body in (("t", {}), ("t-old", {"name": "t-old"})):
        shown = api().post(f"{item}:undelete", body, query=query)
        assert shown.status_code == 200, shown.content
        fields = {key: shown.json()[key] for key in ("id", "name", "partitions")}
        assert fields == {"id": made["id"], "name": name, "partitions": 2}
    api().post(f"{path}/topics", {"name": "t"})
    cases.assert_problem(api().post(f"{item}:undelete", query=query), 409, "name_taken")
    assert api().get(item).status_code == 200
    assert [topic["name"] for topic in api().get(f"{path}/topics").json()["items"]] == ["t"]
    assert not AuditEntry.objects.filter(action="topic.undelete").exists()


def test_a_purge_takes_the_name(api, path, cluster_id):
    made = api().post(f"{path}/topics", {"name": "t"}).json()
    api().delete(f"{path}/topics/t")
    item = f"{path}/deleted-topics/{made['id']}"
    cases.assert_problem(api().delete(item), 422, "name_not_confirmed")
    cases.assert_problem(api().delete(item, query={"name": "x"}), 422, "name_not_confirmed")
    assert api().delete(item, query={"name": "t"}).status_code == 204
    cases.assert_problem(api().delete(item, query={"name": "t"}), 404, "not_found")
    assert cluster_store(cluster_id).deleted_topics() == []


def test_what_is_no_orphan_is_not_attached(api, path):
    assert api().get(f"{path}/orphaned-topics").json() == {"items": [], "next_cursor": None}
    made = api().post(f"{path}/topics", {"name": "t"}).json()
    attach = f"{path}/orphaned-topics/{made['id']}:attach"
    cases.assert_problem(api().post(attach), 404, "not_found")


def test_records_come_back_and_go(api, path, cluster_id):
    with running_broker(cluster_id):
        made = api().post(f"{path}/topics", {"name": "t", "partitions": 1}).json()
        access = access_of(cluster_id)
        for n in range(5):
            kafka.produce(access, "t", NewRecord(value=str(n).encode(), partition=0))
        api().delete(f"{path}/topics/t")
        back = api().post(f"{path}/deleted-topics/{made['id']}:undelete").json()
        assert back["status"]["conditions"][0]["status"] == "true"
        messages = f"{path}/topics/t/messages"
        answer = api().get(messages, query={"from": "oldest"})
        assert answer.status_code == 200, answer.content
        page = answer.json()["items"]
        assert [record["value"]["text"] for record in page] == ["0", "1", "2", "3", "4"]
        delete = f"{path}/topics/t:delete-records"
        body = {"partitions": [{"partition": 0, "before_offset": 3}]}
        taken = {"items": [{"partition": 0, "low_watermark": "3", "deleted_offsets": "3"}]}
        planned = api().post(f"{delete}?validate_only=true", body)
        assert planned.json() == taken, planned.content
        page = api().get(messages, query={"from": "oldest"}).json()["items"]
        assert [int(record["offset"]) for record in page] == [0, 1, 2, 3, 4]
        left = api().post(delete, body)
        assert left.json() == taken, left.content
        page = api().get(messages, query={"from": "oldest"}).json()["items"]
        assert [record["offset"] for record in page] == ["3", "4"]
        body = {"partitions": [{"partition": 0, "before_offset": 99}]}
        for asked in (delete, f"{delete}?validate_only=true"):
            document = cases.assert_problem(api().post(asked, body), 422, "kafka_refused")
            assert document["kafka_error"] == "OFFSET_OUT_OF_RANGE"
        body = {"partitions": [{"partition": 7, "before_offset": 0}]}
        cases.assert_problem(api().post(delete, body), 404, "not_found")
        body = {"partitions": [{"partition": 0, "before_offset": -1}]}
        rest = {"partition": 0, "low_watermark": "5", "deleted_offsets": "2"}
        assert api().post(delete, body).json()["items"] == [rest]
    cases.assert_problem(api().post(delete, body), 409, "cluster_asleep")
