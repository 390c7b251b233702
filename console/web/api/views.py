"""Endpoints that belong to no application."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.api.permissions import Anyone
from console.base.common.api.views import ApiView
from console.base.common.conf import config
from console.base.common.errors import NotFound
from console.web.local_mail import newest_mails


class LocalMailSerializer(serializers.Serializer[Any]):
    """A mail that the service wrote into its folder."""

    id = serializers.CharField()
    to = serializers.CharField()
    subject = serializers.CharField()
    sent_at = serializers.DateTimeField()
    text = serializers.CharField()


class LocalMailPageSerializer(serializers.Serializer[Any]):
    """The newest mails."""

    items = LocalMailSerializer(many=True)
    next_cursor = serializers.CharField(allow_null=True)


class LocalMailView(ApiView):
    """Mails of a service that one person runs on one machine; elsewhere there is no such address.

    Open to everybody who reaches the machine's loopback: a person who has lost the session reads
    the mail that brings it back.
    """

    authentication_classes = ()
    permission_classes = (Anyone,)
    serializer_class = LocalMailPageSerializer
    examples = {
        "GET": [
            OpenApiExample(
                "One",
                response_only=True,
                value={
                    "items": [
                        {
                            "id": "20261121-140200-1.eml",
                            "to": "ada@example.com",
                            "subject": "Verify your address",
                            "sent_at": "2026-11-21T14:02:00Z",
                            "text": "Follow the link to verify your address.",
                        }
                    ],
                    "next_cursor": None,
                },
            )
        ]
    }

    @extend_schema(operation_id="local_mail_list")
    def get(self, request: Request) -> Response:
        """The newest mails first."""
        settings = config()
        if not settings.local or settings.mail.backend != "folder":
            raise NotFound
        return self.answer({"items": newest_mails(settings.mail.folder), "next_cursor": None})
