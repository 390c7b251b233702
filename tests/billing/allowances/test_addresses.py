"""Which addresses are one."""

import pytest

from billing.allowances.addresses import address_sha256, plain_address

SAME = [
    ("ada@example.com", "Ada@Example.com"),
    ("ada@example.com", " ada@example.com. "),
    ("ada@example.com", "ada+trial2@example.com"),
    ("ada@example.com", "ada+a+b@example.com"),
    ("ada.l@gmail.com", "adal+x@googlemail.com"),
    ("ada@example.com", "ａｄａ@example.com"),
    ("alice@example.org", '"alice"@example.org'),
    ("alice@example.org", '"a\\lice"@example.org'),
    ("alice@example.org", '"ali\\ce+2"@example.org'),
    ("jd@gmail.com", '"j.d"@gmail.com'),
    ("x@exämple.org", "x@xn--exmple-cua.org"),
    ("x@EXÄMPLE.org", "x@XN--EXMPLE-CUA.ORG"),
    ("x@exa\u0308mple.org", "x@exämple.org"),
    ("x@example\u3002org", "x@example.org"),
]
OTHERS = [
    ("ada.l@example.com", "adal@example.com"),
    ("ada@example.com", "ada@example.org"),
    ("ada@example.com", "bea@example.com"),
    ("+a@example.com", "+b@example.com"),
    ('"a b"@example.com', "ab@example.com"),
    ('""@example.com', '"a"@example.com'),
    ("x@exämple.org", "x@example.org"),
    ("x@[192.0.2.1]", "x@[192.0.2.2]"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_writings_of_one_mailbox_are_one_address(first, second):
    assert plain_address(first) == plain_address(second)
    assert address_sha256(first) == address_sha256(second)


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_other_mailboxes_are_others(first, second):
    assert plain_address(first) != plain_address(second)


def test_every_address_that_an_account_may_have_is_compared():
    """Otherwise one account would stop the trials of all."""
    for address in ('""@example.com', '"\\""@example.com', "a@[192.0.2.1]", "a@a_b.example.com"):
        assert len(address_sha256(address)) == 64


@pytest.mark.parametrize("text", ["", "ada", "@example.com", "ada@"])
def test_a_text_without_a_mailbox_is_refused(text):
    with pytest.raises(ValueError, match="no address"):
        plain_address(text)
