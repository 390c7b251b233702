"""Real clients through the gateway, without TLS and with it."""

import subprocess
import sys
import urllib.request
import uuid

import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.gateway.cells import DOMAIN, PASSWORD, ROOT, USER, until
from tests.gateway.names import run_with_names
from tests.gateway.raw import metric
from tests.gateway.tls_client import LIBRARIES, TIMEOUT_S
from tests.metrics_page import documented, reported_metrics

MECHANISMS = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture
def topic():
    """A topic name that no other test has."""
    return f"topic-{uuid.uuid4().hex[:12]}"


def login(spec, mechanism="SCRAM-SHA-512", password=PASSWORD):
    return {
        "bootstrap.servers": f"127.0.0.1:{spec.ports[0]}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": USER,
        "sasl.password": password,
    }


def kcat(settings, *arguments, given=b""):
    options = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
    return ["kcat", *options, *arguments], given


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kcat_produces_and_consumes(served, topic, mechanism):
    _, spec, *_ = served
    settings = login(spec, mechanism)
    command, given = kcat(settings, "-P", "-t", topic, given=b"one\ntwo\n")
    subprocess.run(command, input=given, check=True, timeout=60)
    command, _ = kcat(settings, "-C", "-t", topic, "-e", "-q", "-o", "beginning")
    read = subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert read.stdout == b"one\ntwo\n"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka_produces_and_a_group_consumes(served, topic, mechanism):
    _, spec, *_ = served
    settings = login(spec, mechanism)
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})
    for number in range(1000):
        producer.produce(topic, str(number))
    assert producer.flush(TIMEOUT_S) == 0
    reading = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, **reading})
    consumer.subscribe([topic])
    values: set[bytes | None] = set()

    def read_all():
        values.update(message.value() for message in consumer.consume(500, 1))
        return len(values) == 1000

    until(read_all, "all records")
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python_produces_and_consumes(served, topic, mechanism):
    _, spec, *_ = served
    settings = {
        "bootstrap_servers": f"127.0.0.1:{spec.ports[0]}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    producer = kafka.KafkaProducer(**settings)
    assert producer.send(topic, b"value").get(TIMEOUT_S).offset == 0
    producer.close()
    consumer = kafka.KafkaConsumer(topic, auto_offset_reset="earliest", **settings)
    assert next(consumer).value == b"value"
    consumer.close()


def test_clients_get_the_address_of_the_gateway(served):
    _, spec, keeper, _ = served
    metadata = AdminClient(login(spec)).list_topics(timeout=TIMEOUT_S)
    addresses = [f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()]
    assert addresses == [f"127.0.0.1:{spec.ports[0]}"]
    assert addresses != [keeper.broker.bootstrap]


def test_connections_and_bytes_are_counted_at_both_ends(served, topic):
    _, spec, keeper, gateway = served
    producer = confluent_kafka.Producer(login(spec))
    producer.produce(topic, b"x" * 100_000)
    assert producer.flush(TIMEOUT_S) == 0
    label = f'{{cluster="{spec.id}"}}'
    assert metric(keeper.broker.metrics_address, "freshet_client_connections") >= 1
    address = gateway.ready["metrics"]
    assert metric(address, f"freshet_gateway_connections{label}") >= 1
    assert metric(address, f"freshet_gateway_bytes_in_total{label}") >= 100_000
    assert metric(address, f"freshet_gateway_bytes_out_total{label}") > 0
    assert metric(address, "freshet_gateway_metadata_readable") == 1


def test_the_page_has_what_gateways_and_brokers_report(served, topic):
    _, spec, keeper, gateway = served
    # Whoever comes first wakes the broker.
    producer = confluent_kafka.Producer(login(spec))
    producer.produce(topic, b"x")
    assert producer.flush(TIMEOUT_S) == 0
    sections = {"Gateway": gateway.ready["metrics"], "Broker": keeper.broker.metrics_address}
    for section, address in sections.items():
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as answer:
            reported = reported_metrics(answer.read().decode())
        page = documented(section)
        # What was never counted, such as a refusal, is not reported.
        assert reported
        assert {name: page.get(name) for name in reported} == reported


def names_of(spec):
    """The cluster's name, and those of its nodes, of which clients see three at least."""
    nodes = [f"b{slot}-{spec.host}.{DOMAIN}" for slot in range(3)]
    return [f"{spec.host}.{DOMAIN}", *nodes]


@pytest.mark.parametrize("library", LIBRARIES)
def test_tls_by_name(served, topic, tmp_path, library):
    _, spec, _, gateway = served
    names = names_of(spec)
    bootstrap = f"{names[0]}:{gateway.tls_port}"
    module = [sys.executable, "-m", "tests.gateway.tls_client", library]
    command = ["env", "-C", str(ROOT), *module, bootstrap, str(gateway.authority), topic]
    ran = run_with_names(tmp_path, names, command)
    assert ran.returncode == 0, ran.stderr.decode()
    assert ran.stdout.decode().strip() == f"by {library}"


def test_tls_with_kcat_and_plain(served, topic, tmp_path):
    _, spec, _, gateway = served
    names = names_of(spec)
    settings = {
        **login(spec, "PLAIN"),
        "bootstrap.servers": f"{names[0]}:{gateway.tls_port}",
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(gateway.authority),
    }
    command, given = kcat(settings, "-P", "-t", topic, given=b"hidden\n")
    ran = run_with_names(tmp_path, names, command, given=given)
    assert ran.returncode == 0, ran.stderr.decode()
    command, _ = kcat(settings, "-C", "-t", topic, "-e", "-q", "-o", "beginning")
    assert run_with_names(tmp_path, names, command).stdout == b"hidden\n"
