"""How much of a cluster's traffic nobody is billed for, as its brokers say."""

import pytest
from confluent_kafka.admin import AdminClient

from tests.provisioning.control.clients import client_settings
from tests.provisioning.kafka.clients import LIMIT_S, create_topic
from tests.supervisor.run import wait_until


@pytest.fixture
def unbilled(api, path):
    """Reads the endpoint."""

    def ask():
        answer = api().get(f"{path}/unbilled-traffic")
        assert answer.status_code == 200, answer.content
        return answer.json()

    return ask


def test_a_running_cluster_says_how_much_is_not_billed_and_who_takes_it(
    api, cluster_id, awake, unbilled
):
    # What the service does is not the client's.
    create_topic(awake, "t", 1)
    settings = client_settings(api, cluster_id)
    client = AdminClient(settings)
    client.list_topics(timeout=LIMIT_S)
    wait_until(lambda: int(unbilled()["bytes"] or 0) > 0, "the request is counted")
    shown = unbilled()
    (taker,) = shown["principals"]
    assert taker == {"principal": f"User:{settings['sasl.username']}", "bytes": shown["bytes"]}
    client.list_topics(timeout=LIMIT_S)
    wait_until(
        lambda: int(unbilled()["bytes"]) > int(shown["bytes"]), "a further request is counted"
    )


def test_of_a_sleeping_cluster_it_is_not_known(cell, unbilled):
    assert unbilled() == {"bytes": None, "principals": []}
