"""Endpoints of projects, of roles in them, and of service accounts."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import member_examples as examples
from console.base.accounts.api import member_serializers as shapes
from console.base.accounts.models import Project, RoleBinding, ServiceAccount
from console.base.common.actor import Permission, require
from console.base.common.api.views import (
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)


class ProjectViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Projects: parts of the organisation's clusters, with roles of their own.

    Managing the organisation makes and deletes them; managing a project changes it.
    """

    in_projects = True
    project_field = "id"
    queryset = Project.objects.current()
    serializer_class = shapes.ProjectSerializer
    input_serializers = {
        "create": shapes.ProjectCreateSerializer,
        "partial_update": shapes.ProjectUpdateSerializer,
    }
    permissions_required = dict.fromkeys(("create", "partial_update", "destroy"), Permission.MANAGE)
    lookup_value_regex = "prj_[a-z2-7]+"
    examples = examples.PROJECTS

    def perform_create(self, data: dict[str, Any]) -> object:
        """A project without clusters."""
        require(self.actor, Permission.MANAGE)
        return services.create_project(actor=self.actor, **data)

    def perform_update(self, instance: Project, data: dict[str, Any]) -> object:
        """Another name, other labels."""
        return services.update_project(actor=self.actor, project=instance, changes=data)

    def perform_destroy(self, instance: Project) -> None:
        """Ends it, if it has no clusters (409 `project_not_empty`) and is not the default one."""
        require(self.actor, Permission.MANAGE)
        services.delete_project(actor=self.actor, project=instance)


class RoleBindingViewSet(ListAction, RetrieveAction, CreateAction, DestroyAction):
    """Roles in projects. What the role in the organisation does not grant, these may."""

    in_projects = True
    project_field = "project_id"
    queryset = RoleBinding.objects.select_related("membership")
    serializer_class = shapes.RoleBindingSerializer
    input_serializers = {"create": shapes.RoleBindingCreateSerializer}
    permissions_required = {"create": Permission.MANAGE, "destroy": Permission.MANAGE}
    lookup_value_regex = "rb_[a-z2-7]+"
    examples = examples.ROLE_BINDINGS

    @extend_schema(parameters=[shapes.RoleBindingQuerySerializer])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first."""
        return super().list(request, *args, **kwargs)

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one project or principal, if the query names it."""
        if self._action() != "list":
            return queryset
        wanted = self.validated_query(shapes.RoleBindingQuerySerializer)
        if "project_id" in wanted:
            queryset = queryset.filter(project_id=wanted["project_id"])
        if "principal_id" in wanted:
            queryset = queryset.of_principal(wanted["principal_id"])
        return queryset

    def perform_create(self, data: dict[str, Any]) -> object:
        """Gives a member or a service account a role in a project."""
        return services.create_role_binding(actor=self.actor, **data)

    def perform_destroy(self, instance: RoleBinding) -> None:
        """Takes it away: effective with the next request, and within 5 s on open streams."""
        services.delete_role_binding(actor=self.actor, binding=instance)


class ServiceAccountViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Programs of the organisation, which act by API keys of theirs.

    Whoever may not read the organisation sees none, but for those who manage a project: they see
    which accounts they may give roles in it.
    """

    queryset = ServiceAccount.objects.current()
    serializer_class = shapes.ServiceAccountSerializer
    input_serializers = {
        "create": shapes.ServiceAccountCreateSerializer,
        "partial_update": shapes.ServiceAccountUpdateSerializer,
    }
    permissions_required = {
        **dict.fromkeys(("list", "retrieve"), Permission.BELONG),
        **dict.fromkeys(("create", "partial_update", "destroy"), Permission.MANAGE),
    }
    lookup_value_regex = "sa_[a-z2-7]+"
    examples = examples.SERVICE_ACCOUNTS

    def get_queryset(self) -> Any:
        """Those that the actor may see."""
        found = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return found
        seen = self.actor.may(Permission.READ) or self.actor.may_somewhere(Permission.MANAGE)
        return found if seen else found.none()

    def perform_create(self, data: dict[str, Any]) -> object:
        """An account without keys."""
        return services.create_service_account(actor=self.actor, **data)

    def perform_update(self, instance: ServiceAccount, data: dict[str, Any]) -> object:
        """Changes it. Disabled, none of its keys authenticates, within 5 s on open streams."""
        return services.update_service_account(actor=self.actor, account=instance, changes=data)

    def perform_destroy(self, instance: ServiceAccount) -> None:
        """Ends it with its keys and its roles in projects."""
        services.delete_service_account(actor=self.actor, account=instance)
