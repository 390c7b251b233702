"""Tests how pods and Deployments are seen as brokers."""

import pytest

from provisioning.cell.drivers.base import BrokerState, Endpoints
from provisioning.cell.drivers.kubernetes.manifests import deployment
from provisioning.cell.drivers.kubernetes.observe import observe_brokers
from tests.provisioning.kubernetes.plans import CLUSTER, OPTIONS


def desired(slot=0, replicas=1, **status):
    return deployment(CLUSTER, slot, replicas, OPTIONS) | {"status": status}


def pod(name="pod", slot=0, *, ready=False, container=None, created="2026-01-01T00:00:01Z", **more):
    manifest = {
        "metadata": {
            "name": name,
            "creationTimestamp": created,
            "labels": {"freshet.dev/slot": str(slot)},
        },
        "status": {
            "podIP": "10.1.2.3",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [container or {"restartCount": 0}],
        },
    }
    manifest["metadata"] |= more.pop("metadata", {})
    manifest["status"] |= more
    return manifest


ENDING = {"deletionTimestamp": "2026-01-01T00:00:09Z"}


def one(deployments, pods):
    (broker,) = observe_brokers(deployments, pods, OPTIONS)
    return broker


def test_a_ready_pod_is_a_broker_that_serves():
    broker = one([desired()], [pod(ready=True)])
    assert (broker.state, broker.name) == (BrokerState.RUNNING, "pod.0")
    assert broker.endpoints == Endpoints("10.1.2.3:9092", "10.1.2.3:9094", "10.1.2.3:9093")


def test_addresses_of_ipv6_are_in_brackets():
    assert one([desired()], [pod(ready=True, podIP="fd00::7")]).endpoints.kafka == "[fd00::7]:9092"


def test_no_replicas_and_no_pods_are_no_broker():
    assert observe_brokers([desired(replicas=0)], [], OPTIONS) == ()
    assert observe_brokers([], [], OPTIONS) == ()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_not_there(phase):
    assert observe_brokers([desired(replicas=0)], [pod(phase=phase)], OPTIONS) == ()


def test_a_pod_that_nobody_wants_is_stopping():
    assert one([desired(replicas=0)], [pod(ready=True)]).state is BrokerState.STOPPING
    assert one([], [pod(metadata=ENDING)]).state is BrokerState.STOPPING


def test_the_newest_pod_that_nobody_ends_counts():
    pods = [
        pod("older", ready=True, metadata=ENDING),
        pod("newer", created="2026-01-01T00:00:05Z"),
    ]
    broker = one([desired()], pods)
    assert (broker.name, broker.state) == ("newer.0", BrokerState.STARTING)
    assert one([desired()], pods[:1]).state is BrokerState.WAITING


def test_what_keeps_a_pod_from_running_is_said():
    unscheduled = [{"type": "PodScheduled", "status": "False", "message": "no node has the memory"}]
    broker = one([desired()], [pod(conditions=unscheduled, containerStatuses=None)])
    assert (broker.state, broker.message) == (BrokerState.STARTING, "no node has the memory")
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}
    broker = one([desired(conditions=[refused])], [])
    assert (broker.state, broker.message) == (BrokerState.WAITING, "exceeded quota")
    unpulled = {"restartCount": 0, "state": {"waiting": {"message": "no such image"}}}
    assert one([desired()], [pod(container=unpulled)]).message == "no such image"


def test_a_container_that_ends_again_and_again_waits():
    container = {
        "restartCount": 3,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1, "message": "cannot reach etcd\n"}},
    }
    broker = one([desired()], [pod(container=container)])
    assert (broker.state, broker.failures) == (BrokerState.WAITING, 3)
    assert (broker.name, broker.message) == ("pod.3", "cannot reach etcd")


@pytest.mark.parametrize("place", ["state", "lastState"])
def test_refused_settings_are_a_failure(place):
    ended = {"terminated": {"exitCode": 2, "message": "storage.colour: unknown"}}
    container = {"restartCount": 1, place: ended}
    broker = one([desired()], [pod(container=container)])
    assert (broker.state, broker.message) == (BrokerState.FAILED, "storage.colour: unknown")


def test_a_pod_belongs_to_the_broker_of_its_slot():
    deployments = [desired(0), desired(1), desired(2, replicas=0)]
    pods = [pod("a", 0, ready=True), pod("b", 1), pod("c", 2, ready=True)]
    states = [(broker.slot, broker.state) for broker in observe_brokers(deployments, pods, OPTIONS)]
    assert states == [
        (0, BrokerState.RUNNING),
        (1, BrokerState.STARTING),
        (2, BrokerState.STOPPING),
    ]
