"""The program of the tutorial, run as it is printed there, by a real client against the service."""

from __future__ import annotations

import json
import logging
import re

import confluent_kafka
import pytest

from tests.browser.clients import python_program
from tests.service.api import Api, Connection, Credential
from tests.service.traffic import librdkafka_settings
from tests.supervisor.run import ROOT, wait_until

pytestmark = pytest.mark.timeout(600)
LESSON = (ROOT / "docs/tutorials/first-cluster.md").read_text()
TOPIC = "hello-freshet"
FLUSH_S = 120


def program_of_the_lesson():
    """The lesson's only program in Python."""
    (program,) = re.findall(r"^```python\n(.*?)^```$", LESSON, re.MULTILINE | re.DOTALL)
    return program


def error_of_a_record(connection, topic):
    """Produces a record as an idempotent producer; returns its error, None where it is written."""
    outcomes = []
    settings = librdkafka_settings(connection, **{"enable.idempotence": True})
    producer = confluent_kafka.Producer(settings, logger=logging.getLogger("producer"))
    producer.produce(topic, b"value", on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(FLUSH_S) == 0
    return outcomes[0]


def test_the_lessons_program_produces_and_consumes(service, tmp_path):
    api = Api.sign_up(service.address)
    cluster_id = api.create_cluster("lesson")
    steps = f"/clusters/{cluster_id}/first-steps"
    assert api.call("GET", steps)["credential"] is False
    api.create_topic(cluster_id, TOPIC, 1)
    made = api.call(
        "POST", f"/clusters/{cluster_id}/credentials", {"name": "lesson", "role": "none"}
    )
    rights = [
        ("TOPIC", TOPIC, "WRITE"),
        ("TOPIC", TOPIC, "READ"),
        ("GROUP", "python-group", "READ"),
    ]
    api.call(
        "POST",
        f"/clusters/{cluster_id}/acls:batch",
        {
            "items": [
                {
                    "principal": f"User:{made['username']}",
                    "resource_type": kind,
                    "resource_name": name,
                    "operation": operation,
                }
                for kind, name, operation in rights
            ]
        },
    )
    program = program_of_the_lesson()
    for printed, own in (
        ("127.0.0.1:9092", api.cluster(cluster_id)["bootstrap_servers"]),
        ("USERNAME", made["username"]),
        ("PASSWORD", made["password"]),
    ):
        assert program.count(json.dumps(printed)) == 1
        program = program.replace(json.dumps(printed), json.dumps(own))
    assert api.call("GET", steps) == {"credential": True, "produced": False, "consumed": False}
    with python_program(program, tmp_path) as running:
        assert running.wait_for_line("hello from Python") == "0 0 hello from Python"
        wait_until(
            lambda: api.call("GET", steps)["consumed"], "the service has seen the first steps"
        )
    done = {"credential": True, "produced": True, "consumed": True}
    assert api.call("GET", steps) == done
    # Java's and Go's clients are idempotent producers, unless somebody chooses otherwise.
    api.create_topic(cluster_id, "other", 1)
    credential = Credential(made["username"], made["password"], made["mechanism"])
    connection = Connection(api.cluster(cluster_id)["bootstrap_servers"], credential)
    assert error_of_a_record(connection, TOPIC) is None
    refused = error_of_a_record(connection, "other")
    assert refused is not None
    assert refused.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
    # A cluster that sleeps is known by its last sample.
    api.finish(api.call("POST", f"/clusters/{cluster_id}:sleep", status=202))
    wait_until(lambda: api.phase(cluster_id) == "asleep", "it sleeps")
    wait_until(lambda: api.call("GET", steps) == done, "the sample has it")
    api.leave()
