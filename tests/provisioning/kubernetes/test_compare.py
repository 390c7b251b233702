"""Tests the comparison of an existing object with the desired one."""

import pytest

from provisioning.cell.drivers.kubernetes.compare import differing_paths, has_fields

EXISTING = {
    "spec": {"replicas": 1, "ports": [{"port": 1, "protocol": "TCP"}, {"port": 2}]},
    "status": {"ready": True},
}


@pytest.mark.parametrize(
    "desired",
    [
        {},
        {"spec": {}},
        {"spec": {"replicas": 1}},
        {"spec": {"ports": [{"port": 1}, {"port": 2}]}},
    ],
)
def test_further_fields_of_the_existing_object_do_not_matter(desired):
    assert has_fields(desired, EXISTING)
    assert differing_paths(desired, EXISTING) == []


@pytest.mark.parametrize(
    ("desired", "where"),
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
def test_differences_are_named(desired, where):
    assert not has_fields(desired, EXISTING)
    assert differing_paths(desired, EXISTING) == where
