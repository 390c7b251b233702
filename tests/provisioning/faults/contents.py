"""Kinds of operations on what lies in a cluster: topics, ACLs, quotas and credentials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from brokers.metadata_records import QuotaEntity
from provisioning.models import Credential
from tests.provisioning.faults.courses import Course, nothing, post
from tests.provisioning.faults.world import World, ago


def topic(world: World) -> None:
    """There is one."""
    world.ask("POST", f"{world.path}/topics", {"name": "t", "partitions": 2})


def topic_gone(world: World) -> None:
    """It was deleted."""
    topic(world)
    world.ask("DELETE", f"{world.path}/topics/t")


def gone_id(world: World) -> str:
    """The id of a deleted topic."""
    return str(world.gone)


def remember_gone(world: World) -> None:
    """A deleted topic, whose id is known."""
    topic_gone(world)
    world.gone = world.store.deleted_topics()[0].id


def has_topics(*wanted: tuple[str, int]) -> Callable[[World], None]:
    """Checks names and partitions of all topics, and that each is there once."""

    def check(world: World) -> None:
        assert [(each.name, each.partitions) for each in world.store.topics()] == list(wanted)

    return check


def has_gone(count: int) -> Callable[[World], None]:
    """Checks how many deleted topics there are, and no other."""

    def check(world: World) -> None:
        assert world.store.topics() == []
        assert len(world.store.deleted_topics()) == count

    return check


def has_config(world: World) -> None:
    """The topic's configuration is as asked for."""
    assert dict(world.store.topic("t").configs) == {"retention.ms": "1000"}


ACL = {"principal": "User:x", "resource_type": "TOPIC", "resource_name": "t", "operation": "READ"}
QUOTA = {"user": "alice", "produce_bytes_per_second": 1024}


def has_acls(count: int) -> Callable[[World], None]:
    """Checks how many entries there are."""

    def check(world: World) -> None:
        assert len(world.store.list_acls()) == count

    return check


def has_quota(world: World) -> None:
    """The quota is as asked for."""
    assert {quota.entity: dict(quota.values) for quota in world.store.quotas()} == {
        QuotaEntity(user="alice"): {"producer_byte_rate": 1024.0}
    }


def has_no_quota(world: World) -> None:
    """There is none."""
    assert world.store.quotas() == []


def put_quota(world: World) -> None:
    """Sets it."""
    world.ask("PUT", f"{world.path}/quotas", QUOTA)


def credential(world: World) -> None:
    """There is one, with an entry and a quota beside its role."""
    made = world.ask("POST", f"{world.path}/credentials", {"name": "app", "role": "producer"})
    world.credential = made.json()["id"]
    principal = f"User:{world.credential}"
    world.ask("POST", f"{world.path}/acls", {**ACL, "principal": principal})
    quota = {**QUOTA, "user": world.credential}
    world.ask("PUT", f"{world.path}/quotas", quota)


def credentials(world: World) -> list[Credential]:
    """Rows of those that authenticate, the oldest first."""
    with world.rows():
        found = Credential.objects.filter(cluster_id=world.cluster_id)
        return list(found.order_by("created_at"))


def one_credential(world: World) -> None:
    """There is one, and the last answer told its name."""
    (found,) = credentials(world)
    assert world.answers[-1].json()["id"] == found.pk


def no_credential(world: World) -> None:
    """There is none."""
    assert credentials(world) == []


def rotate(world: World) -> None:
    """Another in its place."""
    path = f"{world.path}/credentials/{world.credential}:rotate"
    world.ask("POST", path, {"overlap_s": 3600})


def rotated(world: World) -> None:
    """Both authenticate, with the same rights and quotas."""
    older, newer = credentials(world)
    assert (older.pk, newer.replaces_id) == (world.credential, older.pk)
    assert older.replaced_at is not None
    rights = {
        each: {
            (entry.resource_type, entry.resource_name, entry.operation)
            for entry in world.store.list_acls()
            if entry.principal == f"User:{each}"
        }
        for each in (older.pk, newer.pk)
    }
    assert rights[older.pk] == rights[newer.pk] != set()
    assert {quota.entity.user for quota in world.store.quotas()} == {older.pk, newer.pk}


def expiring(world: World) -> None:
    """It was rotated, and its overlap is over."""
    credential(world)
    rotate(world)
    with world.rows():
        Credential.objects.filter(pk=world.credential).update(expires_at=ago(seconds=1))


def expired(world: World) -> None:
    """Only the newer one is left."""
    (left,) = credentials(world)
    assert left.pk != world.credential


def remove_credential(world: World) -> None:
    """Ends it."""
    world.ask("DELETE", f"{world.path}/credentials/{world.credential}")


def with_acl(world: World) -> None:
    """There is an entry."""
    world.acl = world.ask("POST", f"{world.path}/acls", ACL).json()["id"]


# Nothing of it is left to workers; `of_credential` has what a sweep goes on with.
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
        topic,
        has_config,
        {"topic.update": 1},
        repeats=True,
    ),
    of_content(
        "topic-partitions",
        post("/topics/t/partitions", {"count": 5}),
        topic,
        has_topics(("t", 5)),
        {"topic.add_partitions": 1},
    ),
    of_content(
        "topic-delete",
        lambda world: world.ask("DELETE", f"{world.path}/topics/t"),
        topic,
        has_gone(1),
        {"topic.delete": 1},
    ),
    of_content(
        "topic-undelete",
        lambda world: world.ask(
            "POST", f"{world.path}/deleted-topics/{gone_id(world)}:undelete", {}
        ),
        remember_gone,
        has_topics(("t", 2)),
        {"topic.undelete": 1},
    ),
    of_content(
        "topic-purge",
        lambda world: world.ask(
            "DELETE", f"{world.path}/deleted-topics/{gone_id(world)}", query={"name": "t"}
        ),
        remember_gone,
        has_gone(0),
        {"topic.purge": 1},
    ),
    of_content("acl-create", post("/acls", ACL), check=has_acls(1), audit={"acl.create": 1}),
    of_content(
        "acl-delete",
        lambda world: world.ask("DELETE", f"{world.path}/acls/{world.acl}"),
        with_acl,
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
        check=one_credential,
        audit={"credential.create": 1},
    ),
    of_credential("credential-rotate", rotate, credential, rotated, {"credential.rotate": 1}),
    of_credential(
        "credential-delete", remove_credential, credential, no_credential, {"credential.delete": 1}
    ),
    of_credential("credential-expire", nothing, expiring, expired, {"credential.expire": 1}),
)
