"""Endpoints of projects, of roles in them, and of service accounts."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts import services
from console.base.accounts.api import member_examples as examples
from console.base.accounts.api import member_serializers as shapes
from console.base.accounts.models import Project, RoleBinding, ServiceAccount
from console.base.common.actor import Permission, require_permission
from console.base.common.api.views import (
    CreateAction,
    DestroyAction,
    ListAction,
    RetrieveAction,
    UpdateAction,
)


class ProjectViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Projects: parts of the organization's clusters, with roles of their own.

    Creating and deleting a project needs `manage` in the organization; changing it needs `manage`
    in the project.
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
        """Creates a project without clusters."""
        require_permission(self.actor, Permission.MANAGE)
        return services.create_project(actor=self.actor, **data)

    def perform_update(self, instance: Project, data: dict[str, Any]) -> object:
        """Changes name or labels."""
        return services.update_project(actor=self.actor, project=instance, changes=data)

    def perform_destroy(self, instance: Project) -> None:
        """Deletes a project; answers 409 for one with clusters and for the default project."""
        require_permission(self.actor, Permission.MANAGE)
        services.delete_project(actor=self.actor, project=instance)


class RoleBindingViewSet(ListAction, RetrieveAction, CreateAction, DestroyAction):
    """Roles in projects, which add to what the role in the organization grants."""

    in_projects = True
    project_field = "project_id"
    queryset = RoleBinding.objects.select_related("membership")
    serializer_class = shapes.RoleBindingSerializer
    input_serializers = {"create": shapes.RoleBindingCreateSerializer}
    query_serializers = {"list": shapes.RoleBindingQuerySerializer}
    permissions_required = {"create": Permission.MANAGE, "destroy": Permission.MANAGE}
    lookup_value_regex = "rb_[a-z2-7]+"
    examples = examples.ROLE_BINDINGS

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Lists roles in projects, newest first."""
        return super().list(request, *args, **kwargs)

    def filter_queryset(self, queryset: Any) -> Any:
        """Narrows a list to the project and the principal that the query names."""
        if self._action() != "list":
            return queryset
        filters = self.query()
        if "project_id" in filters:
            queryset = queryset.filter(project_id=filters["project_id"])
        if "principal_id" in filters:
            queryset = queryset.of_principal(filters["principal_id"])
        return queryset

    def perform_create(self, data: dict[str, Any]) -> object:
        """Gives a member or a service account a role in a project."""
        return services.create_role_binding(actor=self.actor, **data)

    def perform_destroy(self, instance: RoleBinding) -> None:
        """Takes the role away, from the next request on, and within 5 s on open streams."""
        services.delete_role_binding(actor=self.actor, binding=instance)


class ServiceAccountViewSet(ListAction, RetrieveAction, CreateAction, UpdateAction, DestroyAction):
    """Service accounts: identities of the organization's programs, which act by API keys.

    A person who may not read the organization sees none, unless they manage a project: then they
    see all accounts, to which they may give roles in it.
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
        """The service accounts that the actor may see."""
        accounts = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return accounts
        visible = self.actor.may(Permission.READ) or self.actor.may_somewhere(Permission.MANAGE)
        return accounts if visible else accounts.none()

    def perform_create(self, data: dict[str, Any]) -> object:
        """Creates an account without keys."""
        return services.create_service_account(actor=self.actor, **data)

    def perform_update(self, instance: ServiceAccount, data: dict[str, Any]) -> object:
        """Changes the account. Disabling it refuses its keys, within 5 s on open streams."""
        return services.update_service_account(actor=self.actor, account=instance, changes=data)

    def perform_destroy(self, instance: ServiceAccount) -> None:
        """Deletes the account, with its keys and its roles in projects."""
        services.delete_service_account(actor=self.actor, account=instance)
