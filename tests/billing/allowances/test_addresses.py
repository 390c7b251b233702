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
]
OTHERS = [
    ("ada.l@example.com", "adal@example.com"),
    ("ada@example.com", "ada@example.org"),
    ("ada@example.com", "bea@example.com"),
    ("+a@example.com", "+b@example.com"),
]


@pytest.mark.parametrize(("first", "second"), SAME)
def test_writings_of_one_mailbox_are_one_address(first, second):
    assert plain_address(first) == plain_address(second)
    assert address_sha256(first) == address_sha256(second)


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_other_mailboxes_are_others(first, second):
    assert plain_address(first) != plain_address(second)


@pytest.mark.parametrize("text", ["", "ada", "@example.com", "ada@"])
def test_a_text_without_a_mailbox_is_refused(text):
    with pytest.raises(ValueError, match="no address"):
        plain_address(text)
