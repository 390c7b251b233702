"""Types of arguments of `manage.py` commands."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable


def line_of(chars_max: int) -> Callable[[str], str]:
    """The type of an argument of at most so many printable characters, as its column holds them.

    Otherwise the database refuses it, with an error that names no argument.
    """

    def read(text: str) -> str:
        if len(text) > chars_max:
            message = f"it has {len(text)} characters, and at most {chars_max} are taken"
            raise ArgumentTypeError(message)
        if not text.isprintable():
            message = "printable characters only"
            raise ArgumentTypeError(message)
        return text

    return read
