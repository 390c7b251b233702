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
from console.settings.config import Config
from console.web.local_mail import (
    check_mail_cookie,
    check_mail_token,
    newest_mails,
    remember_mail_token,
)


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


class LocalMailTokenSerializer(serializers.Serializer[Any]):
    """The token behind `#` in the link that the service's start printed."""

    token = serializers.CharField(max_length=64, write_only=True)


class LocalMailView(ApiView):
    """Mails of a service that one person runs on one machine; elsewhere there is no such address.

    For who started the service: a browser shows the token that the start printed. No session is
    needed: a person who has lost it reads the mail that brings it back.
    """

    authentication_classes = ()
    permission_classes = (Anyone,)
    serializer_class = LocalMailPageSerializer
    input_serializers = {"POST": LocalMailTokenSerializer}
    idempotent = False
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
        ],
        "POST": [
            OpenApiExample(
                "The printed token",
                request_only=True,
                value={"token": "8c1f0a6b2d3e4f5a6b7c8d9e0f1a2b3c"},
            )
        ],
    }

    @extend_schema(operation_id="local_mail_list")
    def get(self, request: Request) -> Response:
        """The newest mails first, for a browser that has shown the token."""
        settings = self._settings()
        check_mail_cookie(request._request)
        return self.answer({"items": newest_mails(settings.mail.folder), "next_cursor": None})

    @extend_schema(operation_id="local_mail_open", responses={204: None})
    def post(self, request: Request) -> Response:
        """Shows the token; this browser may then read the mails."""
        self._settings()
        token = self.validated_input()["token"]
        check_mail_token(token)
        response = Response(status=204)
        remember_mail_token(response, token)
        return response

    def _settings(self) -> Config:
        """Returns the settings. Raises `NotFound` where no folder has the mails."""
        settings = config()
        if not settings.local or settings.mail.backend != "folder":
            raise NotFound
        return settings
