"""Serializers of problem documents and of `validate_only` answers, for the OpenAPI file."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

CODE_HELP = (
    "Stable: programs may depend on it. The known codes are in `x-codes`, with the titles and "
    "statuses of their problems; others may be added."
)


class FieldErrorSerializer(serializers.Serializer[Any]):
    """What is wrong with one place of the request."""

    pointer = serializers.CharField(
        help_text="A JSON pointer into the body, or `?` and the name of a query parameter."
    )
    code = serializers.CharField()
    detail = serializers.CharField()


class QuotaSerializer(serializers.Serializer[Any]):
    """The published limit that was reached."""

    name = serializers.CharField()
    limit = serializers.IntegerField()
    used = serializers.IntegerField()


class ValidatedSerializer(serializers.Serializer[Any]):
    """The answer to `validate_only`: the change would have worked; nothing was changed."""

    valid = serializers.BooleanField()


class ProblemSerializer(serializers.Serializer[Any]):
    """An RFC 9457 problem."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text=CODE_HELP)
    request_id = serializers.CharField()
    errors = FieldErrorSerializer(many=True, required=False)  # type: ignore[assignment]
    quota = QuotaSerializer(required=False)
