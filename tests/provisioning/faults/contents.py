"""Kinds of operations on what lies in a cluster: topics, ACLs, quotas and credentials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from brokers.metadata_records import QuotaEntity
from provisioning.models import Credential
from tests.provisioning.faults.courses import Course, nothing, post
from tests.provisioning.faults.world import World, ago


def make_topic(world: World) -> None:
    """Creates a topic with two partitions."""
    world.ask("POST", f"{world.path}/topics", {"name": "t", "partitions": 2})


def delete_topic(world: World) -> None:
    """Creates a topic and deletes it."""
    make_topic(world)
    world.ask("DELETE", f"{world.path}/topics/t")


def deleted_topic_id(world: World) -> str:
    """Returns the id of the topic that `delete_and_note_topic` deleted."""
    return world.deleted_topic_id


def delete_and_note_topic(world: World) -> None:
    """Deletes a topic, and notes its id down in `world`."""
    delete_topic(world)
    world.deleted_topic_id = world.store.deleted_topics()[0].id


def has_topics(*expected: tuple[str, int]) -> Callable[[World], None]:
    """Checks names and numbers of partitions of all topics, and that no topic is there twice."""

    def check(world: World) -> None:
        assert [(topic.name, topic.partitions) for topic in world.store.topics()] == list(expected)

    return check


def has_deleted_topics(count: int) -> Callable[[World], None]:
    """Checks how many deleted topics there are, and that there is no other topic."""

    def check(world: World) -> None:
        assert world.store.topics() == []
        assert len(world.store.deleted_topics()) == count

    return check


def has_config(world: World) -> None:
    """Checks that the topic has the configuration that was asked for."""
    assert dict(world.store.topic("t").configs) == {"retention.ms": "1000"}


ACL = {"principal": "User:x", "resource_type": "TOPIC", "resource_name": "t", "operation": "READ"}
QUOTA = {"user": "alice", "produce_bytes_per_second": 1024}


def has_acls(count: int) -> Callable[[World], None]:
    """Checks how many ACL entries there are."""

    def check(world: World) -> None:
        assert len(world.store.list_acls()) == count

    return check


def has_quota(world: World) -> None:
    """Checks that the quota is the one that was asked for."""
    assert {quota.entity: dict(quota.values) for quota in world.store.quotas()} == {
        QuotaEntity(user="alice"): {"producer_byte_rate": 1024.0}
    }


def has_no_quota(world: World) -> None:
    """Checks that the cluster has no quotas."""
    assert world.store.quotas() == []


def put_quota(world: World) -> None:
    """Sets a quota."""
    world.ask("PUT", f"{world.path}/quotas", QUOTA)


def make_credential(world: World) -> None:
    """Creates a credential, with an ACL entry and a quota beside those of its role."""
    response = world.ask("POST", f"{world.path}/credentials", {"name": "app", "role": "producer"})
    world.credential = response.json()["id"]
    principal = f"User:{world.credential}"
    world.ask("POST", f"{world.path}/acls", {**ACL, "principal": principal})
    quota = {**QUOTA, "user": world.credential}
    world.ask("PUT", f"{world.path}/quotas", quota)


def list_credentials(world: World) -> list[Credential]:
    """Returns the rows of the cluster's credentials, the oldest first."""
    with world.rows():
        rows = Credential.objects.filter(cluster_id=world.cluster_id)
        return list(rows.order_by("created_at"))


def has_one_credential(world: World) -> None:
    """Checks that there is one credential, and that the last answer has its id."""
    (row,) = list_credentials(world)
    assert world.answers[-1].json()["id"] == row.pk


def has_no_credential(world: World) -> None:
    """Checks that there are no credentials."""
    assert list_credentials(world) == []


def rotate_credential(world: World) -> None:
    """Rotates the credential; both the old and the new one work for an hour."""
    path = f"{world.path}/credentials/{world.credential}:rotate"
    world.ask("POST", path, {"overlap_s": 3600})


def is_rotated(world: World) -> None:
    """Checks that both credentials are there, with the same rights and quotas."""
    older, newer = list_credentials(world)
    assert (older.pk, newer.replaces_id) == (world.credential, older.pk)
    assert older.replaced_at is not None
    rights = {
        username: {
            (entry.resource_type, entry.resource_name, entry.operation)
            for entry in world.store.list_acls()
            if entry.principal == f"User:{username}"
        }
        for username in (older.pk, newer.pk)
    }
    assert rights[older.pk] == rights[newer.pk] != set()
    assert {quota.entity.user for quota in world.store.quotas()} == {older.pk, newer.pk}


def make_expired_credential(world: World) -> None:
    """Rotates a credential, and has the time end in which the old one works beside the new one."""
    make_credential(world)
    rotate_credential(world)
    with world.rows():
        Credential.objects.filter(pk=world.credential).update(expires_at=ago(seconds=1))


def has_expired(world: World) -> None:
    """Checks that only the newer credential is left."""
    (remaining,) = list_credentials(world)
    assert remaining.pk != world.credential


def remove_credential(world: World) -> None:
    """Deletes the credential."""
    world.ask("DELETE", f"{world.path}/credentials/{world.credential}")


def make_acl(world: World) -> None:
    """Creates an ACL entry."""
    world.acl = world.ask("POST", f"{world.path}/acls", ACL).json()["id"]


# Requests about topics, ACLs and quotas leave nothing to workers. Credentials have one round, since
# a sweep goes on with what a request could not finish.
of_content = partial(Course, rounds=0)
of_credential = partial(Course, rounds=1)
CONTENTS: tuple[Course, ...] = (
    of_content(
        "topic-create",
        post("/topics", {"name": "t", "partitions": 2}),
        check=has_topics(("t", 2)),
        audit={"topic.create": 1},
    ),
    of_content(
        "topics-create",
        post("/topics", {"items": [{"name": "t"}, {"name": "u", "partitions": 3}]}),
        check=has_topics(("t", 1), ("u", 3)),
        audit={"topic.create": 2},
    ),
    of_content(
        "topic-update",
        lambda world: world.ask(
            "PATCH", f"{world.path}/topics/t", {"configs": {"retention.ms": "1000"}}
        ),
        make_topic,
        has_config,
        {"topic.update": 1},
        repeats=True,
    ),
    of_content(
        "topic-partitions",
        post("/topics/t/partitions", {"count": 5}),
        make_topic,
        has_topics(("t", 5)),
        {"topic.add_partitions": 1},
    ),
    of_content(
        "topic-delete",
        lambda world: world.ask("DELETE", f"{world.path}/topics/t"),
        make_topic,
        has_deleted_topics(1),
        {"topic.delete": 1},
    ),
    of_content(
        "topic-undelete",
        lambda world: world.ask(
            "POST", f"{world.path}/deleted-topics/{deleted_topic_id(world)}:undelete", {}
        ),
        delete_and_note_topic,
        has_topics(("t", 2)),
        {"topic.undelete": 1},
    ),
    of_content(
        "topic-purge",
        lambda world: world.ask(
            "DELETE", f"{world.path}/deleted-topics/{deleted_topic_id(world)}", query={"name": "t"}
        ),
        delete_and_note_topic,
        has_deleted_topics(0),
        {"topic.purge": 1},
    ),
    of_content("acl-create", post("/acls", ACL), check=has_acls(1), audit={"acl.create": 1}),
    of_content(
        "acl-delete",
        lambda world: world.ask("DELETE", f"{world.path}/acls/{world.acl}"),
        make_acl,
        has_acls(0),
        {"acl.delete": 1},
    ),
    of_content("quota-set", put_quota, check=has_quota, audit={"quota.set": 1}, repeats=True),
    of_content(
        "quota-remove",
        lambda world: world.ask("DELETE", f"{world.path}/quotas", query={"user": "alice"}),
        put_quota,
        has_no_quota,
        {"quota.remove": 1},
    ),
    of_credential(
        "credential-create",
        post("/credentials", {"name": "app", "role": "full"}),
        check=has_one_credential,
        audit={"credential.create": 1},
    ),
    of_credential(
        "credential-rotate",
        rotate_credential,
        make_credential,
        is_rotated,
        {"credential.rotate": 1},
    ),
    of_credential(
        "credential-delete",
        remove_credential,
        make_credential,
        has_no_credential,
        {"credential.delete": 1},
    ),
    of_credential(
        "credential-expire", nothing, make_expired_credential, has_expired, {"credential.expire": 1}
    ),
)
