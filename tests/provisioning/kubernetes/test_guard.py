"""Tests the driver's reports to the deletion guard, lost nodes, and an API server that is away."""

import asyncio
from typing import cast

import pytest

from provisioning.cell.drivers.kubernetes import guard
from provisioning.cell.drivers.kubernetes.api import Api, ApiError, Lost
from provisioning.cell.drivers.kubernetes.observe import is_node_ready, observe_brokers
from provisioning.cell.drivers.kubernetes.pulse import Pulse
from tests.provisioning.kubernetes.plans import OPTIONS
from tests.provisioning.kubernetes.test_observe import ENDING, desired, pod


def node(status="True", **metadata):
    conditions = [{"type": "MemoryPressure", "status": "False"}]
    if status:
        conditions.append({"type": "Ready", "status": status})
    return {"metadata": {"name": "node-1", **metadata}, "status": {"conditions": conditions}}


def test_one_word_says_to_the_policies_whether_deletions_are_held():
    held = guard.health_config_map(OPTIONS, held=True, reason="7 of 9 brokers")
    assert held["data"] == {"deletions": "held", "reason": "7 of 9 brokers"}
    assert held["metadata"]["name"] == "freshet-health"
    assert guard.health_config_map(OPTIONS, held=False, reason="")["data"]["deletions"] == "allowed"


class Recorded:
    """An API that records who changed what."""

    def __init__(self):
        self.calls = []

    def impersonating(self, user, groups):
        self.calls.append((user, tuple(groups)))
        return self

    def merge(self, *call):
        self.calls.append(call)


def test_the_annotation_is_set_as_one_of_the_group_that_may():
    api = Recorded()
    guard.break_glass(cast("Api", api), OPTIONS, "freshet-cl-a", "aud_1")
    change = {"metadata": {"annotations": {"freshet.dev/break-glass": "aud_1"}}}
    assert api.calls == [
        (OPTIONS.identity, ("freshet:break-glass",)),
        ("Namespace", "freshet-cl-a", "", change),
    ]


@pytest.mark.parametrize(
    ("node_object", "ready"),
    [
        (node(), True),
        (node("False"), False),
        (node("Unknown"), False),
        (node(""), False),
        (node(**ENDING), False),
    ],
)
def test_a_node_that_does_not_answer_is_lost(node_object, ready):
    assert is_node_ready(node_object) is ready


def test_brokers_of_a_lost_node_are_lost_whatever_they_do():
    pods = [
        pod("a", 0, ready=True) | {"spec": {"nodeName": "node-1"}},
        pod("b", 1) | {"spec": {"nodeName": "node-2"}},
        pod("c", 2),
        pod("d", 3) | {"spec": {"nodeName": "node-1"}},
    ]
    deployments = [desired(slot) for slot in range(4)]
    brokers = observe_brokers(deployments, pods, OPTIONS, lambda name: name == "node-1")
    assert [broker.lost for broker in brokers] == [True, False, False, True]
    assert [broker.machine for broker in brokers] == ["node-1", "node-2", "", "node-1"]


def test_one_missed_answer_is_no_failure_and_a_refusal_is_an_answer():
    answers = [Lost("gone"), None, Lost("gone"), Lost("gone"), Lost("still"), ApiError(403, "", "")]

    async def beat():
        answer = answers.pop(0)
        if answer is not None:
            raise answer

    async def scenario():
        pulse = Pulse(beat)
        seen = []
        while answers:
            await pulse.ask()
            seen.append(pulse.failure)
        return seen

    assert asyncio.run(scenario()) == [None, None, None, "gone", "still", None]
