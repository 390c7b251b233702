"""The limits of topics: counted anew near a limit, remembered for some seconds far from it."""

from unittest import mock

import pytest

from brokers.metadata import ClusterStore
from brokers.metadata_records import OrphanedTopic
from console.base.common.conf import config
from provisioning.administration.services import topic_room
from provisioning.cells import cluster_store
from tests.console import cases
from tests.console import conftest as console

later = console.later


@pytest.fixture(autouse=True)
def counted_anew():
    topic_room.forget_counts()
    yield
    topic_room.forget_counts()


@pytest.fixture
def topics(cluster_id):
    return f"/clusters/{cluster_id}/topics"


@pytest.fixture
def reads():
    """Counts how often all topics were read."""
    real = ClusterStore.topics
    with mock.patch.object(ClusterStore, "topics", autospec=True, side_effect=real) as read:
        yield lambda: read.call_count


@pytest.fixture
def limits():
    """Sets default limits of this process."""
    defaults = config().limits
    before = {name: getattr(defaults, name) for name in topic_room.LIMITS}

    def put(**values):
        for name, value in values.items():
            object.__setattr__(defaults, name, value)

    yield put
    put(**before)


def test_far_from_the_limit_topics_are_counted_once_in_a_while(api, topics, reads, later):
    for number in range(5):
        assert api().post(topics, {"name": f"t-{number}"}).status_code == 201
    assert reads() == 1
    later(seconds=11)
    assert api().post(topics, {"name": "next"}).status_code == 201
    assert reads() == 2


def test_what_is_made_meanwhile_counts(api, topics, limits, reads):
    limits(topics=6)
    made = [api().post(topics, {"name": f"t-{number}"}).status_code for number in range(8)]
    assert made == [201] * 6 + [403] * 2
    assert reads() > 2


def test_near_the_limit_others_topics_count_at_once(api, topics, cluster_id, limits):
    limits(partitions=10)
    assert api().post(topics, {"name": "mine", "partitions": 4}).status_code == 201
    cluster_store(cluster_id).create_topic("by-a-client", partitions=5)
    document = cases.assert_problem(
        api().post(topics, {"name": "more", "partitions": 2}), 403, "limit_reached"
    )
    assert document["quota"] == {"name": "partitions", "limit": 10, "used": 9}


def test_topics_that_come_back_need_room(api, topics, cluster_id, limits, monkeypatch):
    limits(partitions=10)
    made = api().post(topics, {"name": "back", "partitions": 6}).json()
    assert api().delete(f"{topics}/back").status_code == 204
    assert api().post(topics, {"name": "more", "partitions": 5}).status_code == 201
    undelete = f"/clusters/{cluster_id}/deleted-topics/{made['id']}:undelete"
    for query in ({}, {"validate_only": "true"}):
        response = api().post(undelete, query=query)
        document = cases.assert_problem(response, 403, "limit_reached")
        assert document["quota"] == {"name": "partitions", "limit": 10, "used": 5}
    orphan = OrphanedTopic(id="A" * 22, name="found", partitions=6, found_at_ms=1)
    monkeypatch.setattr(ClusterStore, "orphaned_topics", lambda _: [orphan])
    attach = f"/clusters/{cluster_id}/orphaned-topics/{orphan.id}:attach"
    cases.assert_problem(api().post(attach), 403, "limit_reached")
    assert api().delete(f"{topics}/more").status_code == 204
    topic_room.forget_counts()
    assert api().post(undelete).status_code == 200
