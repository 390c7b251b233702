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


def no_address(text: str) -> None:
    """The validator of an organization's name, which goes to people outside: invitations have it.

    Raises `ValidationError` for a text with the scheme of a URL. Names such as `acme.com` are
    taken, and mails show them so that no mail program makes a link of them.
    """
    if "://" in text:
        message = "A name, not an address: without ://."
        raise serializers.ValidationError(message)
