"""Limits of a cluster: a tenant meets the same number through Kafka's protocol and through REST.

The broker, its metadata store, PostgreSQL and the clients are real.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from brokers.metadata_records import Acl
from console.base.common.actor import Actor, ActorKind, Role
from console.base.common.conf import config
from console.base.common.tenancy import organization_scope
from console.base.limits import services
from console.base.limits.models import LimitRequest
from provisioning.cells import cluster_store
from provisioning.clusters.services.limits import NAMES
from tests.console import cases
from tests.protocol.codec import Codec
from tests.protocol.connection import Connection
from tests.protocol.schemas import error_names, load_schemas
from tests.provisioning.control import conftest as control
from tests.provisioning.control.clients import client_settings
from tests.provisioning.control.world import running_broker
from tests.supervisor.run import wait_until

tenant, other_tenant, api = control.tenant, control.other_tenant, control.api
cell, meters, reconcile = control.cell, control.meters, control.reconcile
make_cluster, cluster_id = control.make_cluster, control.cluster_id

ANY = AclBindingFilter(
    ResourceType.ANY,
    None,
    ResourcePatternType.ANY,
    None,
    None,
    AclOperation.ANY,
    AclPermissionType.ANY,
)
VIOLATION = KafkaError.POLICY_VIOLATION
FULL = KafkaError.GROUP_MAX_SIZE_REACHED
LIMIT_S = 60


@pytest.fixture
def settings(api, cluster_id):
    """A Kafka client of the tenant, which may do everything; the broker runs."""
    with running_broker(cluster_id):
        settings = client_settings(api, cluster_id)
        may_alter_the_cluster(cluster_id, settings)
        yield settings


def may_alter_the_cluster(cluster_id, settings):
    """Gives the client rights on the cluster itself, which no role has, and waits for them."""
    principal = f"User:{settings['sasl.username']}"
    cluster_store(cluster_id).add_acls([entry_of("CLUSTER", "kafka-cluster", principal)])
    admin = AdminClient(settings)
    wait_until(lambda: outcome(admin.describe_acls(ANY))[0] is None, "it may alter the cluster")


def entry_of(resource_type, name, principal):
    return Acl(
        resource_type=resource_type,
        resource_name=name,
        pattern_type="LITERAL",
        principal=principal,
        host="*",
        operation="ALL",
        permission="ALLOW",
    )


def wait_until_seen(cluster_id, admin):
    """Waits until the broker has seen all that was written to its metadata: it sees it in order."""
    store, mark = cluster_store(cluster_id), entry_of("GROUP", "mark", "User:nobody")

    def shown():
        return any(acl.name == "mark" for acl in admin.describe_acls(ANY).result(LIMIT_S))

    store.add_acls([mark])
    wait_until(shown, "the mark is seen")
    store.remove_acls([mark])
    wait_until(lambda: not shown(), "the mark's end is seen")


@pytest.fixture
def limited(reconcile, cluster_id, settings):
    """Sets limits, and waits until the broker enforces them."""
    defaults = config().limits
    before = {name: getattr(defaults, name) for name in NAMES}

    def put(**values):
        for name, value in values.items():
            object.__setattr__(defaults, name, value)
        reconcile(cluster_id)
        wait_until_seen(cluster_id, AdminClient(settings))

    yield put
    for name, value in before.items():
        object.__setattr__(defaults, name, value)


@pytest.fixture
def admin(settings):
    return AdminClient(settings)


def outcome(future):
    """The error's code, or None, and its message."""
    try:
        future.result(LIMIT_S)
    except KafkaException as error:
        return error.args[0].code(), error.args[0].str()
    return None, ""


def outcomes(futures):
    """How often each code came, and the message of the refusals."""
    results = [outcome(future) for future in futures.values()]
    messages = {message for code, message in results if code == VIOLATION}
    return Counter(code for code, _ in results), messages


def refused(response):
    return cases.assert_problem(response, 403, "limit_reached")["quota"]


def test_topics_have_one_limit(api, cluster_id, admin, limited):
    limited(topics=4)
    topics = f"/clusters/{cluster_id}/topics"
    assert api().post(topics, {"name": "by-rest"}).status_code == 201
    new = [NewTopic(f"t-{number}", 1) for number in range(6)]
    counted, messages = outcomes(admin.create_topics(new))
    assert counted == {None: 3, VIOLATION: 3}
    (message,) = messages
    assert message == "limit topics is reached: 4 of 4 are used and 1 more do not fit"
    assert refused(api().post(topics, {"name": "more"})) == {
        "name": "topics",
        "limit": 4,
        "used": 4,
    }
    checked, _ = outcomes(admin.create_topics([NewTopic("more", 1)], validate_only=True))
    assert checked == {VIOLATION: 1}


def test_a_producer_makes_no_topic_beyond_the_limit(settings, admin, limited):
    limited(topics=1)
    assert outcome(admin.create_topics([NewTopic("first", 1)])["first"])[0] is None
    reported = []
    producer = Producer(settings | {"message.timeout.ms": 5_000})
    producer.produce("second", b"x", on_delivery=lambda error, _: reported.append(error))
    assert producer.flush(LIMIT_S) == 0
    assert reported[0] is not None
    assert set(admin.list_topics(timeout=LIMIT_S).topics) == {"first"}


def test_partitions_have_one_limit(api, cluster_id, admin, limited):
    limited(partitions=10)
    topics = f"/clusters/{cluster_id}/topics"
    assert api().post(topics, {"name": "by-rest", "partitions": 4}).status_code == 201
    code, message = outcome(admin.create_topics([NewTopic("large", 7)])["large"])
    assert (code, message) == (
        VIOLATION,
        "limit partitions is reached: 4 of 10 are used and 7 more do not fit",
    )
    assert outcome(admin.create_topics([NewTopic("small", 3)])["small"])[0] is None
    for validate_only in (True, False):
        grown = admin.create_partitions([NewPartitions("small", 8)], validate_only=validate_only)
        assert outcome(grown["small"])[0] == VIOLATION
    assert outcome(admin.create_partitions([NewPartitions("small", 6)])["small"])[0] is None
    quota = {"name": "partitions", "limit": 10, "used": 10}
    assert refused(api().post(f"{topics}/by-rest/partitions", {"count": 5})) == quota
    assert sum(topic.partitions for topic in cluster_store(cluster_id).topics()) == 10


def test_many_clients_at_once_do_not_pass_a_limit_together(settings, cluster_id, limited):
    limited(topics=5)
    admins = [AdminClient(settings) for _ in range(8)]

    def create(number):
        names = [f"t-{number}-{place}" for place in range(3)]
        new = [NewTopic(name, 1) for name in names]
        return outcomes(admins[number].create_topics(new))[0]

    with ThreadPoolExecutor(8) as pool:
        counted: Counter[str | None] = sum(pool.map(create, range(8)), Counter())
    assert counted == {None: 5, VIOLATION: 19}
    assert len(cluster_store(cluster_id).topics()) == 5


def test_acls_have_one_limit_and_an_administrator_the_last_places(api, cluster_id, admin, limited):
    limited(acls=50)
    used = len(cluster_store(cluster_id).list_acls())
    new = [
        AclBinding(
            ResourceType.TOPIC,
            f"t-{number}",
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for number in range(60)
    ]
    counted, messages = outcomes(admin.create_acls(new))
    assert counted == {None: 45 - used, VIOLATION: 15 + used}
    (message,) = messages
    assert message.startswith(f"limit acls is reached: {used} of 50 are used")
    assert message.endswith("the last 5 are kept for the console, REST and Terraform")
    acls = f"/clusters/{cluster_id}/acls"
    entry = {"principal": "User:bob", "resource_type": "TOPIC", "operation": "READ"}
    for number in range(5):
        mine = {**entry, "resource_name": f"mine-{number}"}
        assert api().post(acls, mine).status_code == 201
    more = api().post(acls, {**entry, "resource_name": "more"})
    assert refused(more) == {"name": "acls", "limit": 50, "used": 50}


def test_users_have_one_limit_and_an_administrator_the_last_places(api, cluster_id, admin, limited):
    limited(credentials=20)
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    new = [
        UserScramCredentialUpsertion(f"u-{number:02}", scram, b"a-password-of-ours")
        for number in range(25)
    ]
    # The client's own credential is one of them.
    counted, messages = outcomes(admin.alter_user_scram_credentials(new))
    assert counted == {None: 17, VIOLATION: 8}
    (message,) = messages
    assert message.startswith("limit credentials is reached: 18 of 20 are used")
    credentials = f"/clusters/{cluster_id}/credentials"
    for number in range(2):
        body = {"name": f"mine-{number}", "role": "none"}
        assert api().post(credentials, body).status_code == 201
    more = api().post(credentials, {"name": "more", "role": "none"})
    assert refused(more) == {"name": "credentials", "limit": 20, "used": 20}


def test_quotas_have_one_limit_and_an_administrator_the_last_places(
    api, cluster_id, settings, limited
):
    limited(quotas=20)
    codec = Codec(load_schemas(), error_names())
    entries = [
        {
            "Entity": [{"EntityType": "user", "EntityName": f"u-{number}"}],
            "Ops": [{"Key": "producer_byte_rate", "Value": 1024.0, "Remove": False}],
        }
        for number in range(19)
    ]
    with Connection(settings["bootstrap.servers"], codec) as connection:
        connection.log_in(settings["sasl.username"], settings["sasl.password"])
        body = {"Entries": entries, "ValidateOnly": False}
        answer = connection.ask("AlterClientQuotas", 1, body)
    codes = [entry["ErrorCode"] for entry in answer["Entries"]]
    assert codes == [0] * 18 + [VIOLATION]
    message = answer["Entries"][-1]["ErrorMessage"]
    assert message.startswith("limit quotas is reached: 18 of 20 are used")
    quotas = f"/clusters/{cluster_id}/quotas"
    for number in range(2):
        body = {"user": f"mine-{number}", "produce_bytes_per_second": 1024}
        assert api().request("PUT", quotas, body).status_code in {200, 201}
    more = api().request("PUT", quotas, {"user": "more", "produce_bytes_per_second": 1024})
    assert refused(more) == {"name": "quotas", "limit": 20, "used": 20}


def commit(settings, group, metadata=None):
    """Commits an offset as a new group; returns the error's code."""
    consumer = Consumer(settings | {"group.id": group})
    position = TopicPartition("t", 0, 1)
    if metadata is not None:
        position = TopicPartition("t", 0, 1, metadata)
    try:
        (answer,) = consumer.commit(offsets=[position], asynchronous=False)
    except KafkaException as error:
        return error.args[0].code()
    finally:
        consumer.close()
    return None if answer.error is None else answer.error.code()


def join_error(settings, group):
    """The code with which a consumer that subscribes is refused."""
    consumer = Consumer(settings | {"group.id": group})
    consumer.subscribe(["t"])
    try:
        for _ in range(LIMIT_S * 5):
            message = consumer.poll(0.2)
            if message is not None and message.error():
                return message.error().code()
    finally:
        consumer.close()
    return pytest.fail("it was not refused")


def test_groups_members_and_metadata_of_offsets_are_bounded(settings, admin, limited):
    limited(groups=2, group_members=1)
    assert outcome(admin.create_topics([NewTopic("t", 1)])["t"])[0] is None
    # The client sends one byte more than it is given.
    assert commit(settings, "first", "x" * 4_096) == KafkaError.OFFSET_METADATA_TOO_LARGE
    assert commit(settings, "first", "x" * 4_095) is None
    member = Consumer(settings | {"group.id": "second"})
    member.subscribe(["t"])
    try:
        wait_until(lambda: member.poll(0.1) is None and member.assignment() != [], "it has a part")
        assert commit(settings, "third") == VIOLATION
        assert join_error(settings, "third") == FULL
        assert join_error(settings, "second") == FULL
    finally:
        member.close()
    limited(groups=3)
    wait_until(lambda: commit(settings, "third") is None, "a third group has room")


def test_what_all_groups_take_of_memory_is_bounded_and_deletion_frees_it(settings, admin, limited):
    """Few groups with large metadata meet the bound that many groups do."""
    assert outcome(admin.create_topics([NewTopic("t", 1)])["t"])[0] is None
    assert commit(settings, "first", "x" * 4_095) is None
    # It takes nearly as much.
    limited(group_bytes=10_000)
    assert commit(settings, "second") == VIOLATION
    assert join_error(settings, "second") == VIOLATION
    assert commit(settings, "first", "y" * 4_095) is None
    assert outcome(admin.delete_consumer_groups(["first"])["first"])[0] is None
    assert commit(settings, "second") is None
    assert commit(settings, "first", "x" * 4_095) == VIOLATION
    limited(group_bytes=20_000)
    assert commit(settings, "first", "x" * 4_095) is None


def test_a_limit_that_was_granted_holds_in_a_running_broker(
    api, tenant, cluster_id, admin, limited, reconcile
):
    limited(topics=1)
    assert outcome(admin.create_topics([NewTopic("t-0", 1)])["t-0"])[0] is None
    assert outcome(admin.create_topics([NewTopic("t-1", 1)])["t-1"])[0] == VIOLATION
    body = {"limit": "topics", "wanted": 3, "reason": "More apps.", "cluster_id": cluster_id}
    request_id = api().post("/limit-requests", body).json()["id"]
    with organization_scope(tenant.id):
        actor = Actor(ActorKind.STAFF, "usr_staff", tenant.id, Role.VIEWER)
        request = LimitRequest.objects.get(pk=request_id)
        services.grant_limit(actor=actor, request=request)
    reconcile(cluster_id)
    new = NewTopic("t-1", 1)
    wait_until(lambda: outcome(admin.create_topics([new])["t-1"])[0] is None, "it has room")
    assert outcome(admin.create_topics([NewTopic("t-2", 1)])["t-2"])[0] is None
    assert outcome(admin.create_topics([NewTopic("t-3", 1)])["t-3"])[0] == VIOLATION
    quota = refused(api().post(f"/clusters/{cluster_id}/topics", {"name": "t-3"}))
    assert quota == {"name": "topics", "limit": 3, "used": 3}
