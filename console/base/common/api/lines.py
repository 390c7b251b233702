"""What a name is: one line of text that people can see all of."""

from __future__ import annotations

from rest_framework import serializers

from console.base.runtime.texts import is_line


def one_line(text: str) -> None:
    """The validator of every field that sets a name.

    Raises `ValidationError` for line breaks, control characters, marks that turn the direction of
    writing, and characters that are none: names stand in mails, lists and documents.
    """
    if not is_line(text):
        message = "Printable characters only."
        raise serializers.ValidationError(message)
