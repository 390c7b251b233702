"""Topics of a sleeping cluster: listed, created, changed and deleted without waking it."""

import uuid
from unittest import mock

import pytest

from brokers.errors import UnavailableError, UnknownOutcomeError
from brokers.metadata import ClusterStore
from console.base.common.conf import config
from provisioning.administration.api.topic_serializers import TopicSerializer
from provisioning.administration.services.topics import list_topics, with_configs
from provisioning.cells import cluster_store
from provisioning.models import Cluster
from tests.console import cases
from tests.provisioning.control.world import failing, lost


@pytest.fixture
def topics(cluster_id):
    return f"/clusters/{cluster_id}/topics"


class TestTopics(cases.ListCases, cases.CreateCases, cases.UpdateCases, cases.DestroyCases):
    path = "/clusters/<cluster_id>/topics"
    key = "name"
    update_body = {"configs": {"retention.ms": "60000"}}

    @pytest.fixture
    def collection(self, topics):
        return topics

    def body(self):
        return {"name": f"t-{uuid.uuid4().hex[:8]}"}

    def test_create_refuses_a_key_used_for_another_body(self, owner, collection):
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        assert owner.post(collection, self.body(), headers=headers).status_code == 201
        response = owner.post(collection, {"name": "another"}, headers=headers)
        cases.assert_problem(response, 422, "idempotency_key_reused")

    @pytest.mark.parametrize("query", [{"limit": 5_000}, {"limit": 0}])
    def test_list_refuses_bad_pages(self, owner, collection, query):
        document = cases.assert_problem(owner.get(collection, query=query), 422)
        assert document["errors"][0]["pointer"] == "?limit"


def test_a_sleeping_clusters_topic_says_when_it_is_served(api, topics, cluster_id, cell):
    made = api().post(topics, {"name": "orders", "partitions": 3}).json()
    assert (made["partitions"], made["replication_factor"], made["internal"]) == (3, 1, False)
    assert made["status"]["conditions"] == [
        {
            "type": "Ready",
            "status": "false",
            "reason": "NotLed",
            "message": "It is served as soon as the cluster runs.",
        }
    ]
    assert cell.wake(cluster_id) is None
    assert api().get(f"/clusters/{cluster_id}").json()["status"]["phase"] == "asleep"


def test_a_replication_factor_is_reported_as_asked_for(api, topics):
    assert api().post(topics, {"name": "one"}).json()["replication_factor"] == 1
    made = api().post(topics, {"name": "three", "replication_factor": 3}).json()
    assert made["replication_factor"] == 3
    several = api().post(topics, {"items": [{"name": "two", "replication_factor": 2}]}).json()
    assert [item["replication_factor"] for item in several["items"]] == [2]


def test_a_cluster_that_no_worker_has_seen_takes_topics(api):
    cluster_id = api().post("/clusters", {"name": "fresh"}).json()["resource_id"]
    assert api().post(f"/clusters/{cluster_id}/topics", {"name": "t"}).status_code == 201


def test_configs_are_shown_with_default_and_source(api, topics):
    api().post(topics, {"name": "t", "configs": {"retention.ms": 5, "preallocate": False}})
    details = {
        detail["name"]: detail for detail in api().get(f"{topics}/t").json()["config_details"]
    }
    assert details["retention.ms"]["value"] == "5"
    assert details["retention.ms"]["default"] == "604800000"
    assert details["retention.ms"]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert details["preallocate"]["value"] == "false"
    assert details["cleanup.policy"]["source"] == "DEFAULT_CONFIG"
    assert details["cleanup.policy"]["is_default"]
    assert details["cleanup.policy"]["documentation"]
    (full,) = api().get(topics, query={"view": "full"}).json()["items"]
    assert full["config_details"] == list(details.values())
    (basic,) = api().get(topics).json()["items"]
    assert basic["config_details"] is None
    assert basic["configs"] == {"retention.ms": "5", "preallocate": "false"}


def test_a_config_goes_back_to_its_default(api, topics):
    api().post(topics, {"name": "t", "configs": {"retention.ms": "5", "retention.bytes": "6"}})
    changed = api().patch(f"{topics}/t", {"configs": {"retention.ms": None}})
    assert changed.json()["configs"] == {"retention.bytes": "6"}


def test_changes_of_a_topic_have_old_and_new_values_in_the_audit_log(api, topics):
    api().post(topics, {"name": "t", "partitions": 2, "configs": {"retention.ms": "5"}})
    api().patch(f"{topics}/t", {"configs": {"retention.ms": "7", "cleanup.policy": "compact"}})
    api().patch(f"{topics}/t", {"configs": {"retention.ms": None}})
    api().post(f"{topics}/t/partitions", {"count": 5})
    default = api().get(f"{topics}/t").json()["config_details"]
    (retention,) = [detail["value"] for detail in default if detail["name"] == "retention.ms"]
    entries = api().get("/audit-log", query={"target_type": "topic"}).json()["items"]
    assert {(entry["target"]["name"], entry["action"]) for entry in entries} == {
        ("t", "topic.create"),
        ("t", "topic.update"),
        ("t", "topic.add_partitions"),
    }
    assert [entry["detail"] for entry in reversed(entries)][1:] == [
        {
            "configs": {
                "retention.ms": {"from": "5", "to": "7"},
                "cleanup.policy": {"from": "delete", "to": "compact"},
            }
        },
        {"configs": {"retention.ms": {"from": "7", "to": retention}}},
        {"partitions": {"from": 2, "to": 5}},
    ]
    assert retention not in {None, "7"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "a b"}, "/name"),
        ({"name": "__consumer_offsets"}, "/name"),
        ({"name": "t", "partitions": 0}, "/partitions"),
        ({"name": "t", "configs": {"retention.ms": "soon"}}, "/configs/retention.ms"),
        ({"name": "t", "configs": {"no.such": "1"}}, "/configs/no.such"),
        ({"name": "t", "replication_factor": 4}, "/replication_factor"),
        ({"name": "t", "replication_factor": 32_767}, "/replication_factor"),
        ({"name": "t", "replication_factor": 0}, "/replication_factor"),
        ({"items": [{"name": "ok"}, {"name": "a b"}]}, "/items/1/name"),
        ({"items": [{"name": "ok"}, {}]}, "/items/1/name"),
        ({"items": [{"name": "ok"}, {"name": "ok"}]}, "/items/1/name"),
    ],
)
def test_what_cannot_be_is_pointed_to(api, topics, body, pointer):
    document = cases.assert_problem(api().post(topics, body), 422, "validation_failed")
    assert document["errors"][0]["pointer"] == pointer
    assert api().get(topics).json()["items"] == []


def test_validate_only_makes_nothing(api, topics):
    query = {"validate_only": "true"}
    assert api().post(topics, {"name": "t"}, query=query).status_code == 200
    assert api().post(topics, {"items": [{"name": "t"}]}, query=query).status_code == 200
    cases.assert_problem(api().post(topics, {"name": "a b"}, query=query), 422)
    assert api().get(topics).json()["items"] == []
    api().post(topics, {"name": "t"})
    body = {"configs": {"retention.ms": "1"}}
    assert api().patch(f"{topics}/t", body, query=query).status_code == 200
    assert api().get(f"{topics}/t").json()["configs"] == {}


def test_several_are_made_at_once(api, topics):
    made = api().post(topics, {"items": [{"name": "a"}, {"name": "b", "partitions": 2}]})
    assert made.status_code == 201
    assert [(item["name"], item["partitions"]) for item in made.json()["items"]] == [
        ("a", 1),
        ("b", 2),
    ]


def test_a_taken_name_is_a_conflict(api, topics):
    api().post(topics, {"name": "t"})
    cases.assert_problem(api().post(topics, {"name": "t"}), 409, "name_taken")


def test_partitions_go_up_only(api, topics):
    api().post(topics, {"name": "t", "partitions": 2})
    assert api().post(f"{topics}/t/partitions", {"count": 4}).json()["partitions"] == 4
    shown = api().get(f"{topics}/t/partitions").json()["items"]
    assert [item["partition"] for item in shown] == [0, 1, 2, 3]
    assert {item["leader"] for item in shown} == {None}
    document = cases.assert_problem(api().post(f"{topics}/t/partitions", {"count": 3}), 422)
    assert document["errors"][0]["pointer"] == "/count"
    query = {"validate_only": "true"}
    assert api().post(f"{topics}/t/partitions", {"count": 9}, query=query).status_code == 200
    assert api().get(f"{topics}/t").json()["partitions"] == 4


def test_an_etag_is_of_what_was_asked_for(api, topics):
    """The status is not in it, and a topic that was made anew has another."""

    def tag():
        return api().get(f"{topics}/t")["ETag"]

    body = {"name": "t", "partitions": 2}
    assert api().post(topics, body)["ETag"] == tag()
    tags, configs = [tag()], {"configs": {"retention.ms": "5"}}
    for change in (
        lambda headers: api().patch(f"{topics}/t", configs, headers=headers),
        lambda headers: api().post(f"{topics}/t/partitions", {"count": 3}, headers=headers),
    ):
        stale = change({"If-Match": '"other"'})
        assert cases.assert_problem(stale, 412, "precondition_failed")["etag"] == tags[-1]
        assert change({"If-Match": tags[-1]}).status_code == 200
        tags.append(tag())
    cases.assert_problem(api().delete(f"{topics}/t", headers={"If-Match": tags[0]}), 412)
    assert api().delete(f"{topics}/t", headers={"If-Match": tags[-1]}).status_code == 204
    api().post(topics, body)
    assert tag() not in tags
    assert len(set(tags)) == 3


@pytest.mark.parametrize(
    ("limit", "body"),
    [
        ("topics", {"name": "c"}),
        ("topics", {"items": [{"name": "c"}]}),
        ("partitions", {"name": "c", "partitions": 9}),
    ],
)
def test_limits_are_refused_with_their_quota(api, topics, limit, body):
    api().post(topics, {"items": [{"name": "a"}, {"name": "b"}]})
    limits = config().limits
    before = getattr(limits, limit)
    object.__setattr__(limits, limit, 2)
    try:
        document = cases.assert_problem(api().post(topics, body), 403, "limit_reached")
    finally:
        object.__setattr__(limits, limit, before)
    assert document["quota"] == {"name": limit, "limit": 2, "used": 2}


def test_a_store_that_is_away_is_unavailable(api, topics):
    away = UnavailableError("away")
    for call, request in [
        ("topics", lambda: api().get(topics)),
        ("create_topic", lambda: api().post(topics, {"name": "t"})),
        ("topic", lambda: api().get(f"{topics}/t")),
        ("delete_topic", lambda: api().delete(f"{topics}/t")),
    ]:
        with failing(call, away):
            document = cases.assert_problem(request(), 503, "unavailable")
        assert "away" not in document["detail"]


def test_a_lost_answer_is_looked_up(api, topics):
    """A topic that the lost call made is the answer; one that it did not make is made then."""
    unknown = UnknownOutcomeError("lost")
    with failing("create_topic", lost(UnknownOutcomeError("lost"))):
        assert api().post(topics, {"name": "done", "partitions": 2}).status_code == 201
    with failing("create_topic", unknown):
        assert api().post(topics, {"name": "again", "partitions": 2}).status_code == 201
    assert [item["name"] for item in api().get(topics).json()["items"]] == ["again", "done"]
    with failing("create_topic", unknown):
        cases.assert_problem(api().post(topics, {"name": "done", "partitions": 5}), 409)
    with failing("delete_topic", lost(UnknownOutcomeError("lost"))):
        assert api().delete(f"{topics}/done").status_code == 204
    with failing("delete_topic", unknown):
        assert api().delete(f"{topics}/again").status_code == 204
    assert api().get(topics).json()["items"] == []


def test_an_answer_that_stays_lost_is_an_unknown_outcome(api, topics):
    unknown = UnknownOutcomeError("lost")
    with failing("create_topic", unknown, unknown):
        cases.assert_problem(api().post(topics, {"name": "t"}), 503, "outcome_unknown")


def test_a_thousand_topics_are_one_read(api, topics, cluster_id):
    store = cluster_store(cluster_id)
    for number in range(1_000):
        store.create_topic(f"t-{number:04}")
    reads = []
    real = ClusterStore._call

    def count(self, call, **arguments):
        reads.append(call)
        return real(self, call, **arguments)

    with mock.patch.object(ClusterStore, "_call", count):
        listed = api().get(topics, query={"limit": 1000}).json()
        assert reads == ["topics"]
        full = api().get(topics, query={"limit": 1000, "view": "full"}).json()
    assert reads == ["topics", "topics", "topic_configs"]
    assert len(listed["items"]) == 1_000
    assert listed["next_cursor"] is None
    # A page with every config is larger by far, and the web server has one core.
    assert [topic["name"] for topic in full["items"]] == [f"t-{n:04}" for n in range(200)]
    after = {"limit": 1000, "view": "full", "cursor": full["next_cursor"]}
    assert api().get(topics, query=after).json()["items"][0]["name"] == "t-0200"


def test_topics_are_shown_as_their_fields_say(api, topics, cluster_id):
    """The serializer's own `to_representation` gives what its declared fields give."""
    api().post(topics, {"name": "t", "partitions": 2, "configs": {"retention.ms": "5"}})
    for full in (True, False):
        cluster = Cluster(pk=cluster_id, intent="active")
        listed = list_topics(cluster=cluster, internal=False)
        (shown,) = with_configs(cluster=cluster, shown=listed) if full else listed
        serializer = TopicSerializer()
        assert serializer.to_representation(shown) == super(
            TopicSerializer, serializer
        ).to_representation(shown)
