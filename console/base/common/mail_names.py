"""Texts of tenants in mails: names that can neither be a link nor pass for a sentence of ours.

Mail programs make a link of whatever looks like an address, in plain text too. Whoever names an
organization chooses that text, and an invitation goes to people outside of it.
"""

from __future__ import annotations

import re

NAME_CHARS_MAX = 60
# The dots that browsers take for one: that of ASCII, and those of Chinese and Japanese.
_DOTS = ".\N{IDEOGRAPHIC FULL STOP}\N{FULLWIDTH FULL STOP}\N{HALFWIDTH IDEOGRAPHIC FULL STOP}"
# The dot before a top-level domain. Without it no program sees an address.
_LAST_DOT = re.compile(rf"(?<=\S)[{_DOTS}](?=[^\W\d_]{{2,}}(?![^\W_])|xn--)", re.IGNORECASE)
_SCHEME = re.compile(r"(?<=\w):(?=[/\\]|\S+@)")


def quoted_name(name: str) -> str:
    """Returns a name in quotation marks: one line, `NAME_CHARS_MAX` characters, no link."""
    plain = " ".join(unlinked(name).replace('"', "'").split())
    short = plain if len(plain) <= NAME_CHARS_MAX else plain[: NAME_CHARS_MAX - 1] + "…"
    return f'"{short}"'


def unlinked(text: str) -> str:
    """Returns a text of which no mail program makes a link: `acme[.]example`, `https[:]//x`.

    What no reader sees, such as a mark that turns the direction of text, is replaced.
    """
    visible = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
    return _SCHEME.sub("[:]", _LAST_DOT.sub("[.]", visible))
