"""Tests which running brokers get a new pod, and when."""

import copy
import dataclasses

import pytest

from provisioning.cell.drivers.kubernetes.manifests import manifests
from provisioning.cell.drivers.kubernetes.objects import key_of
from provisioning.cell.drivers.kubernetes.rollout import count_unfinished, permit_writes
from tests.provisioning.kubernetes.plans import OPTIONS, plan_of

NEW = manifests(plan_of(brokers=3), dataclasses.replace(OPTIONS, image="freshet:0.2"))
NAMES = ["broker-0", "broker-1", "broker-2"]


def existing(image=OPTIONS.image, broken=(), **replicas):
    """Returns the objects of a cluster of three brokers as the API server has them.

    Pods of Deployments in `broken` are not ready; `replicas` are counts by name: `broker_2=0`.
    """
    objects = {}
    desired = manifests(plan_of(brokers=3), dataclasses.replace(OPTIONS, image=image))
    for manifest in copy.deepcopy(desired):
        if manifest["kind"] == "Deployment":
            name = manifest["metadata"]["name"]
            count = replicas.get(name.replace("-", "_"), 1)
            manifest["metadata"]["generation"] = 4
            manifest["spec"]["replicas"] = count
            ready = 0 if name in broken else count
            manifest["status"] = {
                "observedGeneration": 4,
                "updatedReplicas": count,
                **({"availableReplicas": ready} if ready else {}),
            }
        objects[key_of(manifest)] = manifest
    return objects


def rolled(objects, budget=5):
    """Returns the names of the Deployments that may be written."""
    now = permit_writes(NEW, objects, budget).now
    return [item["metadata"]["name"] for item in now if item["kind"] == "Deployment"]


def test_one_broker_of_a_cluster_at_a_time():
    writes = permit_writes(NEW, existing(), 5)
    assert (writes.rolling, writes.waiting) == (1, 2)
    assert rolled(existing()) == ["broker-0"]
    assert [item for item in NEW if item["kind"] != "Deployment"] == [
        item for item in writes.now if item["kind"] != "Deployment"
    ]


@pytest.mark.parametrize("field", ["observedGeneration", "updatedReplicas", "availableReplicas"])
def test_the_next_one_waits_until_the_first_serves(field):
    new = existing(image="freshet:0.2")
    first = [key for key in new if key[2] == "broker-0" and key[0] == "Deployment"]
    objects = existing() | {key: new[key] for key in first}
    assert rolled(objects) == ["broker-0", "broker-1"]
    objects[first[0]]["status"][field] -= 1
    assert rolled(objects) == ["broker-0"]
    assert count_unfinished(NEW, objects) == 1
    assert permit_writes(NEW, objects, 5).waiting == 2


def test_nobody_is_rolled_without_a_budget():
    assert rolled(existing(), budget=0) == []
    assert permit_writes(NEW, existing(), 0).waiting == 3


def test_who_does_not_serve_may_be_changed_at_any_time():
    objects = existing(broken=["broker-1"])
    assert rolled(objects, budget=0) == ["broker-1"]
    assert permit_writes(NEW, objects, 5).rolling == 0
    assert count_unfinished(NEW, objects) == 0


def test_who_has_no_pod_loses_none():
    assert rolled(existing(broker_2=0), budget=0) == ["broker-2"]
    assert rolled({}, budget=0) == NAMES


def test_the_same_image_rolls_nobody():
    writes = permit_writes(NEW, existing(image="freshet:0.2"), 5)
    assert (writes.now, writes.rolling, writes.waiting) == (NEW, 0, 0)
