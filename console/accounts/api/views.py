"""Endpoints of accounts."""

from __future__ import annotations

from typing import Any

from console.accounts import services
from console.accounts.api import serializers
from console.accounts.models import ApiKey
from console.common.actor import Permission
from console.common.api.views import CreateAction, DestroyAction, ListAction


class ApiKeyViewSet(ListAction, CreateAction, DestroyAction):
    """API keys of the organisation. A revoked one stays listed for a while, without effect."""

    queryset = ApiKey.objects.all()
    serializer_class = serializers.ApiKeySerializer
    input_serializers = {"create": serializers.ApiKeyCreateSerializer}
    output_serializers = {"create": serializers.ApiKeyCreatedSerializer}
    permissions_required = {"create": Permission.MANAGE, "destroy": Permission.MANAGE}
    lookup_value_regex = "key_[a-z2-7]+"

    def perform_create(self, data: dict[str, Any]) -> object:
        """A key, and its secret for this once."""
        return services.create_api_key(actor=self.actor, **data)

    def perform_destroy(self, instance: ApiKey) -> None:
        """Revokes: the next request with it is refused."""
        services.revoke_api_key(actor=self.actor, key=instance)
