"""How far somebody has come with a cluster: from its brokers, or from its last sample."""

import pytest

from provisioning.administration.services.first_steps import uses_in_sample
from provisioning.administration.services.running_groups import FirstUses
from provisioning.choices import SampleData
from provisioning.clusters.sample_data import RECORDS, TOPIC
from provisioning.models import Cluster
from tests.console.scopes import seeing_rows_of
from tests.provisioning.control.world import put_sample
from tests.provisioning.kafka.clients import commit, create_topic, produce_records
from tests.supervisor.run import wait_until

T0_MS = 1_700_000_000_000
OWN = {TOPIC: len(RECORDS)}


@pytest.fixture
def steps(api, path):
    """Asks for the first steps: credential, produced, consumed."""

    def ask():
        answer = api().get(f"{path}/first-steps")
        assert answer.status_code == 200, answer.content
        return tuple(answer.json()[name] for name in ("credential", "produced", "consumed"))

    return ask


def test_of_a_running_cluster_the_log_and_commits_say_it(api, path, awake, steps):
    wait_until(lambda: steps() == (False, False, False), "nothing was done")
    made = api().post(f"{path}/credentials", {"name": "app", "role": "full"})
    assert made.status_code == 201, made.content
    assert steps()[0] is True
    create_topic(awake, "t", 2)
    # Joining and committing nothing yet leaves traces in a topic of the broker's own alone.
    commit(awake, "g", {("t", 0): 0})
    wait_until(lambda: steps() == (True, False, False), "a group reads nothing yet")
    produce_records(awake, "t", [(1, b"first", T0_MS)])
    wait_until(lambda: steps() == (True, True, False), "a record is produced")
    commit(awake, "g", {("t", 1): 1})
    wait_until(lambda: steps() == (True, True, True), "a record is consumed")


def test_the_services_own_samples_are_nobodys_first_record(awake, steps, cluster_id, tenant):
    create_topic(awake, TOPIC, 1)
    with seeing_rows_of(tenant.id):
        Cluster.objects.filter(pk=cluster_id).update(sample_data=SampleData.DONE)
    samples = [(0, value, T0_MS) for _, value in RECORDS]
    produce_records(awake, TOPIC, samples)
    commit(awake, "g", {(TOPIC, 0): len(samples)})
    wait_until(lambda: steps() == (False, False, True), "samples were consumed")
    produce_records(awake, TOPIC, [(0, b"own", T0_MS)])
    wait_until(lambda: steps() == (False, True, True), "an own record is there")
    with seeing_rows_of(tenant.id):
        Cluster.objects.filter(pk=cluster_id).update(sample_data=SampleData.NONE)
    assert steps() == (False, True, True)


def test_of_a_sleeping_cluster_the_last_sample_says_it(steps, cluster_id, cell):
    assert steps() == (False, None, None)
    group = {
        "group": "g",
        "state": "Empty",
        "type": "classic",
        "protocol": "",
        "coordinator": None,
        "members": [],
        "partitions": [{"topic": "t", "partition": 0, "committed": 2, "end": 5, "lag": 3}],
        "lag": 3,
        "lag_seconds": 0.0,
    }
    put_sample(cluster_id, T0_MS, {"groups": [], "topics": {}})
    assert steps() == (False, None, False)
    put_sample(cluster_id, T0_MS + 1, {"groups": [group], "topics": {}})
    assert steps() == (False, True, True)


@pytest.mark.parametrize(
    ("topics", "produced"),
    [
        pytest.param({"t": [10, 0, 1]}, True, id="a record"),
        pytest.param({TOPIC: [90, 0, 3]}, None, id="the samples"),
        pytest.param({TOPIC: [90, 0, 4]}, True, id="more than the samples"),
        pytest.param({"__consumer_offsets": [90, 0, 9]}, None, id="a topic of the brokers' own"),
        pytest.param({}, None, id="nothing that was counted"),
    ],
)
def test_counters_of_a_sample_say_what_was_produced(topics, produced):
    assert uses_in_sample({"groups": [], "topics": topics}, OWN) == FirstUses(produced, False)


def test_a_partition_of_which_little_is_known_is_no_use():
    unknown = {"topic": "t", "partition": 0, "committed": None, "end": None}
    content = {"groups": [{"group": "g", "partitions": [unknown]}]}
    assert uses_in_sample(content, OWN) == FirstUses(None, False)
