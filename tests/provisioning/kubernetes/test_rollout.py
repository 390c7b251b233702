"""Which running brokers get a new pod, and when."""

import copy
import dataclasses

import pytest

from provisioning.cell.drivers.kubernetes.manifests import manifests
from provisioning.cell.drivers.kubernetes.objects import key_of
from provisioning.cell.drivers.kubernetes.rollout import permitted, unfinished
from tests.provisioning.kubernetes.plans import OPTIONS, plan_of

NEW = manifests(plan_of(brokers=3), dataclasses.replace(OPTIONS, image="freshet:0.2"))
NAMES = ["broker-0", "broker-1", "broker-2"]


def there(image=OPTIONS.image, broken=(), **replicas):
    """What the API server has: of each Deployment whether its pod is ready."""
    found = {}
    shall = manifests(plan_of(brokers=3), dataclasses.replace(OPTIONS, image=image))
    for manifest in copy.deepcopy(shall):
        if manifest["kind"] == "Deployment":
            name = manifest["metadata"]["name"]
            wanted = replicas.get(name.replace("-", "_"), 1)
            manifest["metadata"]["generation"] = 4
            manifest["spec"]["replicas"] = wanted
            ready = 0 if name in broken else wanted
            manifest["status"] = {
                "observedGeneration": 4,
                "updatedReplicas": wanted,
                **({"availableReplicas": ready} if ready else {}),
            }
        found[key_of(manifest)] = manifest
    return found


def rolled(found, budget=5):
    """The brokers whose Deployments may be written."""
    now = permitted(NEW, found, budget).now
    return [each["metadata"]["name"] for each in now if each["kind"] == "Deployment"]


def test_one_broker_of_a_cluster_at_a_time():
    found = permitted(NEW, there(), 5)
    assert (found.rolling, found.waiting) == (1, 2)
    assert rolled(there()) == ["broker-0"]
    assert [each for each in NEW if each["kind"] != "Deployment"] == [
        each for each in found.now if each["kind"] != "Deployment"
    ]


@pytest.mark.parametrize("field", ["observedGeneration", "updatedReplicas", "availableReplicas"])
def test_the_next_one_waits_until_the_first_serves(field):
    new = there(image="freshet:0.2")
    first = [key for key in new if key[2] == "broker-0" and key[0] == "Deployment"]
    found = there() | {key: new[key] for key in first}
    assert rolled(found) == ["broker-0", "broker-1"]
    found[first[0]]["status"][field] -= 1
    assert rolled(found) == ["broker-0"]
    assert unfinished(NEW, found) == 1
    assert permitted(NEW, found, 5).waiting == 2


def test_nobody_is_rolled_without_a_budget():
    assert rolled(there(), budget=0) == []
    assert permitted(NEW, there(), 0).waiting == 3


def test_who_does_not_serve_may_be_changed_at_any_time():
    found = there(broken=["broker-1"])
    assert rolled(found, budget=0) == ["broker-1"]
    assert permitted(NEW, found, 5).rolling == 0
    assert unfinished(NEW, found) == 0


def test_who_has_no_pod_loses_none():
    assert rolled(there(broker_2=0), budget=0) == ["broker-2"]
    assert rolled({}, budget=0) == NAMES


def test_the_same_image_rolls_nobody():
    found = permitted(NEW, there(image="freshet:0.2"), 5)
    assert (found.now, found.rolling, found.waiting) == (NEW, 0, 0)
