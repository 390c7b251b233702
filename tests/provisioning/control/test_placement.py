"""Names that clusters get in the domain."""

import re

import pytest

from provisioning.clusters.services.placement import host_label


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("Orders EU", "orders-eu-"),
        ("b0-orders", "cluster-b0-orders-"),
        ("B12", "cluster-b12-"),
        ("b0x", "b0x-"),
        ("über", "ber-"),
        ("…", "cluster-"),
        ("x" * 100, "x" * 40 + "-"),
    ],
)
def test_a_label_comes_from_the_name_and_is_never_a_brokers(name, start):
    label = host_label(name)
    assert label.startswith(start)
    assert re.fullmatch(r"[a-z0-9-]+", label)
    assert not re.match(r"b\d+-", label)
    assert len(f"b99999-{label}") <= 63
    assert host_label(name) != label
