"""Bases of the API's views, so that an endpoint is a few attributes and calls of services.

`ApiView` for single endpoints, `ApiViewSet` for resources that live elsewhere (topics),
`ResourceViewSet` with its action mixins for rows of an organisation. `README.md` beside this file
shows how an application uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from console.base.common import idempotency
from console.base.common.actor import Actor, Permission, actor_of
from console.base.common.api import etags
from console.base.common.api.pagination import LIMIT_MAX, page_of
from console.base.common.api.problems import CONTENT_TYPE, headers, problem
from console.base.common.api.renderers import JSONRenderer
from console.base.common.errors import (
    AppError,
    FieldError,
    NotFound,
    Quota,
    TooManyRequests,
    ValidationFailed,
)
from console.base.common.paths import name_of
from console.base.common.rates import WINDOW_S, Rate, count_address, count_organization
from console.base.common.requests import client_address, network_of
from console.base.common.tenancy import NO_ORGANIZATION, enter_organization, request_scope

SerializerType = type[BaseSerializer[Any]]
Result = TypeVar("Result")
REPEATED_HEADERS = ("Location", "ETag", "Retry-After")
# The published limit behind each policy.
RATE_LIMITS = {
    "organization": "api_requests_per_second",
    "address": "anonymous_requests_per_second",
}


class RateLimited(TooManyRequests):
    """More API requests than an organisation, or an address that is nobody's, may make."""

    code = "rate_limited"
    title = "Too many API requests"

    def __init__(self, rate: Rate) -> None:
        super().__init__(
            f"At most {rate.limit} requests are served in {WINDOW_S} seconds.",
            quota=Quota(RATE_LIMITS[rate.policy], rate.limit, rate.limit),
            retry_after_s=rate.reset_s,
        )


class ApiMixin(APIView):
    """What every endpoint does: scope, actor, idempotency, and bodies read and written alike."""

    # Action or method → what it asks for; see `console.base.common.api.permissions`.
    permissions_required: ClassVar[Mapping[str, Permission]] = {}
    # A role in a project suffices, for what is that project's.
    in_projects: ClassVar[bool] = False
    # Action or method → serializer of the body.
    input_serializers: ClassVar[Mapping[str, SerializerType]] = {}
    # Action or method → serializer of the answer, where it is not `serializer_class`.
    output_serializers: ClassVar[Mapping[str, SerializerType]] = {}
    # A POST whose answer is not kept under its Idempotency-Key (signing in).
    idempotent: ClassVar[bool] = True
    # A POST that answers 201, for the OpenAPI file (a viewset's `create` does by its name).
    creates: ClassVar[bool] = False

    # Actions or methods of reads that a state of the resource refuses with 409, and of what is open
    # to all but answers 401: for the OpenAPI file.
    conflicts: ClassVar[Sequence[str]] = ()
    signs_in: ClassVar[Sequence[str]] = ()
    # Action or method → examples for the OpenAPI file.
    examples: ClassVar[Mapping[str, Sequence[OpenApiExample]]] = {}

    attempt: idempotency.Attempt | None = None
    # The limit that this request was counted under.
    rate: Rate | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serves within a tenancy scope of its own, which ends with the request.

        Parts of the address become the names that they mean: see `console.base.common.paths`.
        """
        names = {key: name_of(part) for key, part in kwargs.items()}
        with request_scope():
            return super().dispatch(request, *args, **names)

    def perform_authentication(self, request: Request) -> None:
        """Finds out who asks, and counts the request against what they may ask.

        A credential that is wrong counts against its address, so that none is found by trying.
        """
        try:
            super().perform_authentication(request)
        except AppError:
            self._count(None)
            raise
        self._count(request.auth.organization_id if isinstance(request.auth, Actor) else None)

    def _count(self, organization_id: str | None) -> None:
        """Raises `RateLimited`."""
        if organization_id is None:
            self.rate = count_address(network_of(self.address))
        else:
            self.rate = count_organization(organization_id)
        if not self.rate.allowed:
            raise RateLimited(self.rate)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticates, and stops a repeated POST at the answer that it already had."""
        super().initial(request, *args, **kwargs)
        key = request.headers.get(idempotency.HEADER)
        if request.method != "POST" or key is None or not self.idempotent:
            return
        known = request.auth if isinstance(request.auth, Actor) else None
        if known is None:
            enter_organization(NO_ORGANIZATION)
        found = idempotency.begin(
            organization_id=known.organization_id if known else NO_ORGANIZATION,
            actor=known.name if known else client_address(request._request),
            path=request.get_full_path(),
            key=key,
            body=request._request.body,
        )
        if isinstance(found, idempotency.Answer):
            raise _Replay(found)
        self.attempt = found

    def handle_exception(self, exc: Exception) -> Response:
        """A replayed answer is no error; everything else is a problem."""
        if isinstance(exc, _Replay):
            return Response(
                exc.answer.body,
                status=exc.answer.status,
                headers={**exc.answer.headers, "Idempotent-Replayed": "true"},
            )
        self.attempt = None
        return super().handle_exception(exc)

    def finalize_response(
        self,
        request: Request,
        response: Response,
        *args: Any,
        **kwargs: Any,
    ) -> Response:
        """Keeps the answer of a POST with a key; nothing of the API is cached by anybody."""
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "no-store")
        if self.rate is not None:
            for name, value in self.rate.headers.items():
                # Another limit that was met says more than this one, which was not.
                if not self.rate.allowed or name not in final.headers:
                    final.headers[name] = value
        succeeded = final.status_code < status.HTTP_400_BAD_REQUEST
        if self.attempt is not None and succeeded:
            body = b"" if response.data is None else _json(response.data)
            kept = {name: final.headers[name] for name in REPEATED_HEADERS if name in final.headers}
            idempotency.finish(self.attempt, status=final.status_code, body=body, headers=kept)
            self.attempt = None
        return final

    @property
    def actor(self) -> Actor:
        """Who acts. Raises `NotAuthenticated`."""
        return actor_of(self.request)

    @property
    def organization_id(self) -> str:
        """The organisation that the actor acts in."""
        return self.actor.organization_id

    @property
    def address(self) -> str:
        """The caller's address."""
        return client_address(self.request._request)

    @property
    def validate_only(self) -> bool:
        """The parameter `validate_only`: check everything, change nothing."""
        given = self.request.query_params.get("validate_only", "false")
        if given not in {"true", "false"}:
            detail = "true or false is expected."
            raise ValidationFailed(errors=[FieldError("?validate_only", "invalid", detail)])
        return given == "true"

    def validated_input(self, **kwargs: Any) -> dict[str, Any]:
        """The body, read by the serializer that `input_serializers` names."""
        serializer_class = self.input_serializers[self._action()]
        serializer = serializer_class(
            data=self.request.data, context={"request": self.request, "view": self}, **kwargs
        )
        serializer.is_valid(raise_exception=True)
        data: dict[str, Any] = serializer.validated_data
        return data

    def validated_query(self, serializer_class: SerializerType) -> dict[str, Any]:
        """The query parameters, read by a serializer. Errors point to `?name`."""
        serializer = serializer_class(data=self.request.query_params.dict())
        if not serializer.is_valid():
            raise ValidationFailed(
                errors=[
                    FieldError(f"?{name}", "invalid", str(messages[0]))
                    for name, messages in dict(serializer.errors).items()
                ]
            )
        data: dict[str, Any] = serializer.validated_data
        return data

    def answer(
        self,
        result: object,
        *,
        status: int = status.HTTP_200_OK,
        serializer: SerializerType | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """A result as an answer. A `Response` is passed on as it is."""
        if isinstance(result, Response):
            return result
        kind = serializer or self.output_serializer()
        data = kind(result, context={"request": self.request, "view": self}).data
        return Response(data, status=status, headers={**etags.headers(result), **(headers or {})})

    def page(self, items: Sequence[Any], *, key: Any, limit_max: int = LIMIT_MAX) -> Response:
        """A page of items that are in memory, in the order of a unique text key."""
        page, cursor = page_of(self.request, items, key=key, limit_max=limit_max)
        kind = self.output_serializer()
        data = kind(page, many=True, context={"request": self.request, "view": self}).data
        return Response({"items": data, "next_cursor": cursor})

    def refuse(self, error: AppError) -> Response:
        """An error whose request keeps what it wrote (a raised one takes everything back)."""
        return Response(
            problem(error), status=error.status, headers=headers(error), content_type=CONTENT_TYPE
        )

    def output_serializer(self) -> SerializerType:
        """The serializer of this action's answers."""
        named = self.output_serializers.get(self._action())
        kind: SerializerType = named or getattr(self, "serializer_class")  # noqa: B009
        return kind

    def _action(self) -> str:
        return getattr(self, "action", None) or self.request.method or ""


class ApiView(ApiMixin):
    """One endpoint that is no resource: define `get`, `post`, ….

    The mappings of serializers are keyed by method.
    """

    serializer_class: ClassVar[SerializerType | None] = None


class ApiViewSet(ApiMixin, GenericViewSet[Any]):
    """A resource that is not a row: define `list`, `create`, `retrieve`, ….

    The mappings of serializers are keyed by action.
    """

    filter_backends = ()
    lookup_url_kwarg = "id"
    # Parts of the address of an item of a list, for the shared tests and the OpenAPI file.
    lookup_value_regex = r"[a-z]+_[a-z2-7]+"


class ResourceViewSet(ApiViewSet):
    """Rows of an organisation. `queryset` needs no scope: it is narrowed here.

    Combine with the action mixins, and implement the `perform_…` that they call.
    """

    lookup_field = "pk"
    # Path from the row to its organisation.
    organization_field: ClassVar[str] = "organization_id"
    # Path from the row to its project, of rows that are seen and changed by roles in projects.
    project_field: ClassVar[str | None] = None
    list_ordering: ClassVar[tuple[str, ...]] = ("-created_at", "-id")

    def get_queryset(self) -> QuerySet[Any]:
        """Rows of the actor's organisation; the first of the two guards of tenancy."""
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset().none()
        rows = super().get_queryset().filter(**{self.organization_field: self.organization_id})
        readable = self.actor.projects_with(Permission.READ)
        if self.project_field is None or readable is None:
            return rows
        return rows.filter(**{f"{self.project_field}__in": readable})

    def project_of(self, row: Any) -> str | None:
        """The id of a row's project; None where roles in projects do not matter."""
        if self.project_field is None:
            return None
        for name in self.project_field.split("__"):
            row = getattr(row, name)
        return str(row)

    def get_object(self) -> Any:
        """The row that the address names, locked if the request changes it.

        A change is refused if its `If-Match` does not name the row's generation.
        """
        queryset = self.filter_queryset(self.get_queryset())
        changes = self.request.method not in {"GET", "HEAD", "OPTIONS"}
        if changes:
            queryset = queryset.select_for_update(of=("self",))
        found = queryset.filter(**{self.lookup_field: self.kwargs[self.lookup_url_kwarg]}).first()
        if found is None:
            raise NotFound
        self.check_object_permissions(self.request, found)
        if changes:
            etags.check_if_match(self.request, found)
        return found

    def validated(self, change: Any) -> Response:
        """Runs a change and takes it back: 200 `{"valid": true}` if it would have worked."""
        self.tried(change)
        return Response({"valid": True})

    def tried(self, change: Callable[[], Result]) -> Result:
        """What a change comes to, which is taken back."""
        with transaction.atomic():
            result = change()
            transaction.set_rollback(True)
        return result


class ListAction(ResourceViewSet):
    """`GET` of the collection: keyset pages."""

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page of rows."""
        del request, args, kwargs
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        kind = self.output_serializer()
        context = {"request": self.request, "view": self}
        return self.get_paginated_response(kind(rows, many=True, context=context).data)


class RetrieveAction(ResourceViewSet):
    """`GET` of one row, with its ETag."""

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One row."""
        del request, args, kwargs
        return self.answer(self.get_object())


class CreateAction(ResourceViewSet):
    """`POST` to the collection. `validate_only=true` runs the service and takes it back."""

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A new row: 201 with its `Location`, or what `perform_create` answers itself."""
        del request, args, kwargs
        data = self.validated_input()
        if self.validate_only:
            return self.validated(lambda: self.perform_create(data))
        result = self.perform_create(data)
        place = {}
        if isinstance(result, Model):
            place["Location"] = f"{self.request.path}/{result.pk}"
        return self.answer(result, status=status.HTTP_201_CREATED, headers=place)

    def perform_create(self, data: dict[str, Any]) -> object:
        """Calls the service; gives what the output serializer takes, or a `Response`."""
        raise TypeError(type(self))


class UpdateAction(ResourceViewSet):
    """`PATCH` of one row; only the members that the body has change."""

    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The row after the change, with its new ETag; with `validate_only` as it would be."""
        del request, args, kwargs
        instance = self.get_object()
        data = self.validated_input(partial=True)
        if self.validate_only:
            would_be = self.tried(lambda: self.answer(self.perform_update(instance, data)))
            return Response(would_be.data)
        return self.answer(self.perform_update(instance, data))

    def perform_update(self, instance: Any, data: dict[str, Any]) -> object:
        """Calls the service; gives the row, or a `Response`."""
        raise TypeError(type(self))


class DestroyAction(ResourceViewSet):
    """`DELETE` of one row."""

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """204, or what `perform_destroy` answers itself."""
        del request, args, kwargs
        result = self.perform_destroy(self.get_object())
        if isinstance(result, Response):
            return result
        return Response(status=status.HTTP_204_NO_CONTENT)

    def perform_destroy(self, instance: Any) -> object:
        """Calls the service; gives None, or a `Response`."""
        raise TypeError(type(self))


class _Replay(Exception):
    """Ends a repeated request with the answer of the first."""

    def __init__(self, answer: idempotency.Answer) -> None:
        super().__init__()
        self.answer = answer


def _json(data: object) -> bytes:
    rendered: bytes = JSONRenderer().render(data)
    return rendered
