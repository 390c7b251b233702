"""Kinds of operations on what lies in a cluster: topics, ACLs, quotas and credentials."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from brokers.metadata_records import QuotaEntity
from provisioning.models import Credential
from tests.provisioning.faults.courses import Course, nothing, post
from tests.provisioning.faults.estate import Estate, ago


def topic(estate: Estate) -> None:
    """There is one."""
    estate.ask("POST", f"{estate.path}/topics", {"name": "t", "partitions": 2})


def topic_gone(estate: Estate) -> None:
    """It was deleted."""
    topic(estate)
    estate.ask("DELETE", f"{estate.path}/topics/t")


def gone_id(estate: Estate) -> str:
    """The id of a deleted topic."""
    return str(estate.gone)


def remember_gone(estate: Estate) -> None:
    """A deleted topic, whose id is known."""
    topic_gone(estate)
    estate.gone = estate.store.deleted_topics()[0].id


def has_topics(*wanted: tuple[str, int]) -> Callable[[Estate], None]:
    """Checks names and partitions of all topics, and that each is there once."""

    def check(estate: Estate) -> None:
        assert [(each.name, each.partitions) for each in estate.store.topics()] == list(wanted)

    return check


def has_gone(count: int) -> Callable[[Estate], None]:
    """Checks how many deleted topics there are, and no other."""

    def check(estate: Estate) -> None:
        assert estate.store.topics() == []
        assert len(estate.store.deleted_topics()) == count

    return check


def has_config(estate: Estate) -> None:
    """The topic's configuration is as asked for."""
    assert dict(estate.store.topic("t").configs) == {"retention.ms": "1000"}


ACL = {"principal": "User:x", "resource_type": "TOPIC", "resource_name": "t", "operation": "READ"}
QUOTA = {"user": "alice", "produce_bytes_per_second": 1024}


def has_acls(count: int) -> Callable[[Estate], None]:
    """Checks how many entries there are."""

    def check(estate: Estate) -> None:
        assert len(estate.store.list_acls()) == count

    return check


def has_quota(estate: Estate) -> None:
    """The quota is as asked for."""
    assert {quota.entity: dict(quota.values) for quota in estate.store.quotas()} == {
        QuotaEntity(user="alice"): {"producer_byte_rate": 1024.0}
    }


def has_no_quota(estate: Estate) -> None:
    """There is none."""
    assert estate.store.quotas() == []


def put_quota(estate: Estate) -> None:
    """Sets it."""
    estate.ask("PUT", f"{estate.path}/quotas", QUOTA)


def credential(estate: Estate) -> None:
    """There is one, with an entry and a quota beside its role."""
    made = estate.ask("POST", f"{estate.path}/credentials", {"name": "app", "role": "producer"})
    estate.credential = made.json()["id"]
    principal = f"User:{estate.credential}"
    estate.ask("POST", f"{estate.path}/acls", {**ACL, "principal": principal})
    quota = {**QUOTA, "user": estate.credential}
    estate.ask("PUT", f"{estate.path}/quotas", quota)


def credentials(estate: Estate) -> list[Credential]:
    """Rows of those that authenticate, the oldest first."""
    with estate.rows():
        found = Credential.objects.filter(cluster_id=estate.cluster_id)
        return list(found.order_by("created_at"))


def one_credential(estate: Estate) -> None:
    """There is one, and the last answer told its name."""
    (found,) = credentials(estate)
    assert estate.answers[-1].json()["id"] == found.pk


def no_credential(estate: Estate) -> None:
    """There is none."""
    assert credentials(estate) == []


def rotate(estate: Estate) -> None:
    """Another in its place."""
    path = f"{estate.path}/credentials/{estate.credential}:rotate"
    estate.ask("POST", path, {"overlap_s": 3600})


def rotated(estate: Estate) -> None:
    """Both authenticate, with the same rights and quotas."""
    older, newer = credentials(estate)
    assert (older.pk, newer.replaces_id) == (estate.credential, older.pk)
    assert older.replaced_at is not None
    rights = {
        each: {
            (entry.resource_type, entry.resource_name, entry.operation)
            for entry in estate.store.list_acls()
            if entry.principal == f"User:{each}"
        }
        for each in (older.pk, newer.pk)
    }
    assert rights[older.pk] == rights[newer.pk] != set()
    assert {quota.entity.user for quota in estate.store.quotas()} == {older.pk, newer.pk}


def expiring(estate: Estate) -> None:
    """It was rotated, and its overlap is over."""
    credential(estate)
    rotate(estate)
    with estate.rows():
        Credential.objects.filter(pk=estate.credential).update(expires_at=ago(seconds=1))


def expired(estate: Estate) -> None:
    """Only the newer one is left."""
    (left,) = credentials(estate)
    assert left.pk != estate.credential


def remove_credential(estate: Estate) -> None:
    """Ends it."""
    estate.ask("DELETE", f"{estate.path}/credentials/{estate.credential}")


def with_acl(estate: Estate) -> None:
    """There is an entry."""
    estate.acl = estate.ask("POST", f"{estate.path}/acls", ACL).json()["id"]


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
        lambda estate: estate.ask(
            "PATCH", f"{estate.path}/topics/t", {"configs": {"retention.ms": "1000"}}
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
        lambda estate: estate.ask("DELETE", f"{estate.path}/topics/t"),
        topic,
        has_gone(1),
        {"topic.delete": 1},
    ),
    of_content(
        "topic-undelete",
        lambda estate: estate.ask(
            "POST", f"{estate.path}/deleted-topics/{gone_id(estate)}:undelete", {}
        ),
        remember_gone,
        has_topics(("t", 2)),
        {"topic.undelete": 1},
    ),
    of_content(
        "topic-purge",
        lambda estate: estate.ask(
            "DELETE", f"{estate.path}/deleted-topics/{gone_id(estate)}", query={"name": "t"}
        ),
        remember_gone,
        has_gone(0),
        {"topic.purge": 1},
    ),
    of_content("acl-create", post("/acls", ACL), check=has_acls(1), audit={"acl.create": 1}),
    of_content(
        "acl-delete",
        lambda estate: estate.ask("DELETE", f"{estate.path}/acls/{estate.acl}"),
        with_acl,
        has_acls(0),
        {"acl.delete": 1},
    ),
    of_content("quota-set", put_quota, check=has_quota, audit={"quota.set": 1}, repeats=True),
    of_content(
        "quota-remove",
        lambda estate: estate.ask("DELETE", f"{estate.path}/quotas", query={"user": "alice"}),
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
