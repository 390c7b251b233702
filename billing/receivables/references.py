"""References of bank transfers: creditor references by ISO 11649, made from invoice numbers. Pure.

A reference is `RF`, two check digits, and at most 21 letters and digits. A bank refuses one with a
wrong digit, so a payment that names one is for the right invoice.
"""

from __future__ import annotations

import base64
import hashlib
import re

BODY_CHARS_MAX = 21
_PLAIN_NUMBER = re.compile(r"[A-Z0-9]+-[0-9]{4}-[0-9]{6,}")
_REFERENCE = re.compile(rf"RF[0-9]{{2}}[A-Z0-9]{{1,{BODY_CHARS_MAX}}}")
_NOT_PART = re.compile(r"[\s-]")


def reference_of(number: str) -> str:
    """The reference of the invoice with a number, such as `RF97FR2026000042`.

    It has the number's letters and digits. A number from which these would not tell it apart from
    others, or that has too many, is replaced by a part of its hash.
    """
    body = number.replace("-", "")
    if not _PLAIN_NUMBER.fullmatch(number) or len(body) > BODY_CHARS_MAX:
        digest = hashlib.sha256(number.encode()).digest()
        body = base64.b32encode(digest).decode()[:BODY_CHARS_MAX]
    return f"RF{98 - _value(f'{body}RF00') % 97:02d}{body}"


def parse_reference(text: str) -> str:
    """A reference as a person typed it, in the form in which it is kept.

    Raises `ValueError` where it is none, or where its check digits are wrong.
    """
    reference = _NOT_PART.sub("", text).upper()
    if not _REFERENCE.fullmatch(reference):
        message = f"{text!r} is no reference such as RF97 FR20 2600 0042"
        raise ValueError(message)
    if _value(reference[4:] + reference[:4]) % 97 != 1:
        message = f"{text!r} has a wrong digit: its check digits do not fit"
        raise ValueError(message)
    return reference


def readable_reference(reference: str) -> str:
    """A reference in groups of four, as it is printed."""
    return " ".join(reference[at : at + 4] for at in range(0, len(reference), 4))


def _value(text: str) -> int:
    """The number that ISO 7064 computes with: A is 10, Z is 35."""
    return int("".join(str(int(char, 36)) for char in text))
