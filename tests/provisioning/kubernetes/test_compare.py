"""Whether an object is as it is wanted."""

import pytest

from provisioning.cell.drivers.kubernetes.compare import differing, holds

FOUND = {
    "spec": {"replicas": 1, "ports": [{"port": 1, "protocol": "TCP"}, {"port": 2}]},
    "status": {"ready": True},
}


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"spec": {}},
        {"spec": {"replicas": 1}},
        {"spec": {"ports": [{"port": 1}, {"port": 2}]}},
    ],
)
def test_what_is_found_beside_does_not_matter(wanted):
    assert holds(wanted, FOUND)
    assert differing(wanted, FOUND) == []


@pytest.mark.parametrize(
    ("wanted", "where"),
    [
        ({"spec": {"replicas": 2}}, ["spec.replicas"]),
        ({"spec": {"paused": False}}, ["spec.paused"]),
        (
            {"spec": {"ports": [{"port": 2}, {"port": 1}]}},
            ["spec.ports[0].port", "spec.ports[1].port"],
        ),
        ({"spec": {"ports": [{"port": 1}]}}, ["spec.ports"]),
        ({"data": {"a": "b"}}, ["data"]),
        ({"spec": 1}, ["spec"]),
    ],
)
def test_differences_are_named(wanted, where):
    assert not holds(wanted, FOUND)
    assert differing(wanted, FOUND) == where
