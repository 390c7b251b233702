"""Allowed networks: which texts name one, and which addresses lie in one."""

import pytest

from console.base.accounts.addresses import NetworkInvalid, is_allowed, read_network


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("192.0.2.0/24", "192.0.2.0/24"),
        (" 192.0.2.7 ", "192.0.2.7/32"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8:0:0::/32", "2001:db8::/32"),
        ("2001:db8::1", "2001:db8::1/128"),
    ],
)
def test_networks_have_one_canonical_form(text, canonical):
    assert read_network(text) == canonical


@pytest.mark.parametrize(
    "text", ["", "x", "192.0.2.1/24", "192.0.2.0/33", "2001:db8::1/32", "192.0.2.0-192.0.2.9", "1"]
)
def test_a_text_that_is_no_network_is_refused(text):
    with pytest.raises(NetworkInvalid):
        read_network(text)


@pytest.mark.parametrize(
    ("networks", "address", "allowed"),
    [
        ([], "192.0.2.1", True),
        ([], "unknown", True),
        (["192.0.2.0/24"], "192.0.2.255", True),
        (["192.0.2.0/24"], "192.0.3.0", False),
        (["192.0.2.0/24"], "::ffff:192.0.2.9", True),
        (["192.0.2.0/24"], "unknown", False),
        (["192.0.2.0/24"], "2001:db8::1", False),
        (["192.0.2.0/24", "2001:db8::/32"], "2001:db8:ffff::1", True),
        (["0.0.0.0/0"], "2001:db8::1", False),
        (["::/0"], "192.0.2.1", False),
    ],
)
def test_an_address_lies_in_a_network_or_not(networks, address, allowed):
    assert is_allowed(networks, address) is allowed
