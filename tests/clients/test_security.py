"""SASL and ACLs, as several clients see them."""

import asyncio
import time
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from kafka import KafkaProducer
from kafka.errors import KafkaError as KafkaPythonError

from tests.clients.servers import BrokerServer
from tests.peer.kafka import java_tool

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
PASSWORDS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
TIMEOUT_S = 120


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker with every mechanism, and users for each."""
    users = [
        {"name": name, "password": password, "mechanism": mechanism}
        for name, password in PASSWORDS.items()
        for mechanism in MECHANISMS[1:]
    ]
    settings: dict[str, dict[str, object]] = {
        "listener": {"sasl": MECHANISMS},
        "security": {"super_users": ["User:admin"], "users": users},
    }
    with BrokerServer(tmp_path_factory.mktemp("secured"), **settings) as server:
        yield server


def login(secured, user, mechanism="SCRAM-SHA-512", password=None):
    return {
        "bootstrap.servers": secured.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password or PASSWORDS[user],
    }


@pytest.fixture
def admin(secured):
    return AdminClient(login(secured, "admin"))


def result(futures):
    (future,) = futures.values()
    return future.result()


def produce(settings, topic, value=b"x"):
    """Produces a record; returns the name of its error, or None."""
    producer = Producer({**settings, "message.timeout.ms": TIMEOUT_S * 1000})
    outcomes = []
    producer.produce(topic, value, on_delivery=lambda e, m: outcomes.append(e and e.name()))
    assert producer.flush(2 * TIMEOUT_S) == 0
    return outcomes[0]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_right_password_lets_librdkafka_in(secured, admin, topic, mechanism):
    result(admin.create_topics([NewTopic(topic, 1)]))
    assert produce(login(secured, "admin", mechanism), topic) is None


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_password_and_unknown_user_get_the_same_error(secured, mechanism):
    errors = []
    for user in ("admin", "nobody"):
        error = refusal(login(secured, user, mechanism, "wrong"))
        errors.append(error.str().split("): ")[-1].split(" (after")[0].replace(user, "?"))
    assert errors[0] == errors[1]


def refusal(settings):
    """The error with which a client is refused."""
    errors: list[Any] = []
    producer = Producer({**settings, "error_cb": errors.append, "log_level": 0})
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        producer.poll(0.1)
        refusals = [error for error in errors if error.name() == "_AUTHENTICATION"]
        if refusals:
            return refusals[0]
    message = f"not refused: {errors}"
    raise AssertionError(message)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_and_aiokafka_log_in(secured, admin, topic, mechanism):
    result(admin.create_topics([NewTopic(topic, 1)]))
    settings = {
        "bootstrap_servers": secured.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "admin",
        "sasl_plain_password": PASSWORDS["admin"],
    }
    producer = KafkaProducer(**settings)
    assert producer.send(topic, b"x").get(TIMEOUT_S).offset == 0
    producer.close()

    async def run(**overrides):
        producer = AIOKafkaProducer(**{**settings, **overrides})
        try:
            await producer.start()
            return (await producer.send_and_wait(topic, b"x")).offset
        finally:
            await producer.stop()

    assert asyncio.run(run()) == 1
    with pytest.raises(KafkaError):
        asyncio.run(run(sasl_plain_password="wrong"))
    wrong = {**settings, "sasl_plain_password": "wrong", "bootstrap_timeout_ms": 3000}
    with pytest.raises(KafkaPythonError):
        KafkaProducer(**wrong)


def allow(admin, kind, name, user, operation, *, pattern=ResourcePatternType.LITERAL, deny=False):
    permission = AclPermissionType.DENY if deny else AclPermissionType.ALLOW
    rule = AclBinding(kind, name, pattern, f"User:{user}", "*", operation, permission)
    result(admin.create_acls([rule]))
    return rule


def test_nobody_may_do_what_no_acl_allows(secured, admin, topic, group):
    result(admin.create_topics([NewTopic(topic, 1)]))
    alice = login(secured, "alice")
    assert produce(alice, topic) == "TOPIC_AUTHORIZATION_FAILED"
    assert topic not in AdminClient(alice).list_topics(timeout=TIMEOUT_S).topics
    client = AdminClient(alice)
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        result(client.create_topics([NewTopic(f"{topic}-2", 1)]))
    with pytest.raises(KafkaException, match="GROUP_AUTHORIZATION_FAILED"):
        result(client.describe_consumer_groups([group]))


def test_acls_allow_and_deny(secured, admin, topic, group):
    result(admin.create_topics([NewTopic(topic, 1)]))
    alice, bob = login(secured, "alice"), login(secured, "bob")
    prefix = topic[:10]
    allow(admin, ResourceType.TOPIC, topic, "alice", AclOperation.WRITE)
    assert produce(alice, topic) is None
    assert produce(bob, topic) == "TOPIC_AUTHORIZATION_FAILED"
    by_prefix = {"pattern": ResourcePatternType.PREFIXED}
    allow(admin, ResourceType.TOPIC, prefix, "bob", AclOperation.READ, **by_prefix)
    allow(admin, ResourceType.GROUP, group, "bob", AclOperation.READ)
    consumer = Consumer({**bob, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.error() is None
    consumer.close()
    allow(admin, ResourceType.TOPIC, topic, "alice", AclOperation.WRITE, deny=True)
    assert produce(alice, topic) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("client_id", ["app", "__admin_client"])
def test_no_client_reads_or_writes_internal_topics(secured, admin, topic, group, client_id):
    result(admin.create_topics([NewTopic(topic, 1)]))
    mine = TopicPartition(topic, 0, 7)
    owner = Consumer({**login(secured, "admin"), "group.id": group})
    owner.commit(offsets=[mine], asynchronous=False)
    offsets = "__consumer_offsets"
    for user in ("alice", "admin"):
        other = f"{group}-{user}"
        allow(admin, ResourceType.TOPIC, offsets, user, AclOperation.ALL)
        allow(admin, ResourceType.GROUP, other, user, AclOperation.ALL)
        settings = {**login(secured, user), "client.id": client_id}
        # A tombstone of what the other committed, to whichever partition it is in.
        assert produce(settings, offsets, None) == "TOPIC_AUTHORIZATION_FAILED"
        reader = Consumer({**settings, "group.id": other})
        reader.assign([TopicPartition(offsets, 0, 0)])
        message = reader.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is not None
        assert message.error().name() == "TOPIC_AUTHORIZATION_FAILED"
        reader.close()
        change = AlterConfigOpType.SET
        configs = [ConfigEntry("cleanup.policy", "delete", incremental_operation=change)]
        resource = ConfigResource(ResourceType.TOPIC, offsets, incremental_configs=configs)
        client = AdminClient(settings)
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            result(client.incremental_alter_configs([resource]))
        with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            result(client.create_topics([NewTopic("__transaction_state", 1)]))
    assert owner.committed([mine])[0].offset == 7
    owner.close()


def test_acls_are_listed_and_removed(secured, admin, topic):
    rule = allow(admin, ResourceType.TOPIC, topic, "alice", AclOperation.READ)
    any_of_topic = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.ANY,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    assert admin.describe_acls(any_of_topic).result() == [rule]
    assert result(admin.delete_acls([any_of_topic])) == [rule]
    assert admin.describe_acls(any_of_topic).result() == []
    client = AdminClient(login(secured, "alice"))
    with pytest.raises(KafkaException, match="CLUSTER_AUTHORIZATION_FAILED"):
        # By a deletion: confluent-kafka gives an empty list for a description that was refused.
        result(client.delete_acls([any_of_topic]))


def test_java_tools_log_in_and_create_users(secured, admin, topic, tmp_path):
    def properties(user, mechanism, password):
        module = "scram.ScramLoginModule" if "SCRAM" in mechanism else "plain.PlainLoginModule"
        path = tmp_path / f"{user}-{mechanism}.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
            f'username="{user}" password="{password}";\n'
        )
        return ("--bootstrap-server", secured.bootstrap, "--command-config", str(path))

    java_tool(
        "kafka.admin.ConfigCommand",
        *properties("admin", "PLAIN", PASSWORDS["admin"]),
        *("--alter", "--entity-type", "users", "--entity-name", "carol"),
        *("--add-config", "SCRAM-SHA-256=[iterations=4096,password=carol-secret]"),
        heap="256m",
    )
    result(admin.create_topics([NewTopic(topic, 1)]))
    allow(admin, ResourceType.TOPIC, topic, "carol", AclOperation.DESCRIBE)
    listed = java_tool(
        "org.apache.kafka.tools.TopicCommand",
        *properties("carol", "SCRAM-SHA-256", "carol-secret"),
        "--list",
        heap="256m",
    )
    assert listed.stdout.split() == [topic]
