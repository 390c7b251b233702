"""Bases of the API's views, so that an endpoint is a few attributes and calls of services.

`ApiView` for single endpoints, `ApiViewSet` for resources that live elsewhere (topics),
`ResourceViewSet` with its action mixins for rows of an organization. `README.md` beside this file
shows how an application uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar, TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiExample
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from console.base.common import idempotency
from console.base.common.actor import Actor, Permission, actor_of
from console.base.common.api import etags
from console.base.common.api.pagination import LIMIT_MAX, page_of
from console.base.common.api.problems import CONTENT_TYPE, field_errors, headers, problem
from console.base.common.api.renderers import JSONRenderer
from console.base.common.api.types import mistyped_fields, mistyped_parameters
from console.base.common.api.unknown import fields_without_use, unknown_fields, unknown_parameters
from console.base.common.errors import (
    AppError,
    FieldError,
    NotFound,
    ValidationFailed,
)
from console.base.common.paths import name_of
from console.base.common.rates import Rate, RateLimited, count_address, count_organization
from console.base.common.requests import client_address, network_of
from console.base.common.tenancy import NO_ORGANIZATION, enter_organization, request_scope
from console.base.common.transactions import (
    RequestTransaction,
    forget_tried,
    outside_transaction,
    request_transaction,
)
from console.base.common.turn_keys import turn_keys
from console.base.common.turns import RequestTurn
from console.base.common.waiting import count_waiting

SerializerType = type[BaseSerializer[Any]]
Result = TypeVar("Result")
REPEATED_HEADERS = ("Location", "ETag", "Retry-After")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# The query parameters of every list.
PAGING = frozenset({"cursor", "limit"})


class ApiMixin(APIView):
    """What every endpoint shares: transaction, tenancy scope, actor, idempotency, bodies."""

    # Action or method → the permission that it requires; see `console.base.common.api.permissions`.
    permissions_required: ClassVar[Mapping[str, Permission]] = {}
    # Whether a role in a project suffices for rows of that project.
    in_projects: ClassVar[bool] = False
    # Action or method → serializer of the body. An operation without one takes no body.
    input_serializers: ClassVar[Mapping[str, SerializerType]] = {}
    # Actions or methods whose body may be left out.
    optional_bodies: ClassVar[Sequence[str]] = ()
    # Whether the view reads the bytes of bodies itself: they are no JSON of this API.
    raw_bodies: ClassVar[bool] = False
    # Action or method → serializer of the query parameters, but for the following ones.
    query_serializers: ClassVar[Mapping[str, SerializerType]] = {}
    # Actions or methods that take `validate_only`; the action mixins below take it anyway.
    validates: ClassVar[Sequence[str]] = ()
    # Actions or methods that answer pages beside `list`, and actions named `list` that do not.
    lists: ClassVar[Sequence[str]] = ()
    single: ClassVar[Sequence[str]] = ()
    # Action or method → serializer of the answer, where it is not `serializer_class`.
    output_serializers: ClassVar[Mapping[str, SerializerType]] = {}
    # Methods beside reads that people of a closed organization may use, as to pay what it owes.
    for_closed: ClassVar[Sequence[str]] = ()
    # Whether answers of a POST are stored under its Idempotency-Key; those of a sign-in are not.
    idempotent: ClassVar[bool] = True
    # Whether a POST answers 201. For the OpenAPI file; a viewset's `create` does so anyway.
    creates: ClassVar[bool] = False
    # How many items a page of the view's lists has at most.
    limit_max: ClassVar[int] = LIMIT_MAX

    # Actions or methods that read, and still may answer 409. For the OpenAPI file.
    conflicts: ClassVar[Sequence[str]] = ()
    # Actions or methods that need no credential, and still may answer 401. For the OpenAPI file.
    signs_in: ClassVar[Sequence[str]] = ()
    # Action or method → examples for the OpenAPI file.
    examples: ClassVar[Mapping[str, Sequence[OpenApiExample]]] = {}

    transaction: RequestTransaction
    turn: RequestTurn
    attempt: idempotency.Attempt | None = None
    # The limit that this request was counted under.
    rate: Rate | None = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serves a request within a transaction and a tenancy scope of its own.

        Waits interrupt the transaction: see `console.base.common.transactions`. Parts of the path
        are decoded to names: see `console.base.common.paths`. It computes in turns, its
        authentication too: see `console.base.common.turns`.
        """
        names = {key: name_of(part) for key, part in kwargs.items()}
        self.turn = RequestTurn()
        try:
            with request_transaction() as self.transaction, request_scope():
                self.transaction.turn = self.turn
                response = super().dispatch(request, *args, **names)
                self.transaction.write_deferred()
            if isinstance(response, Response):
                # Large answers take long to write. Django writes none a second time.
                response.render()
                # A view and its request refer to each other, and stay until they are collected as
                # garbage: not with the answer.
                del self.response
            return response
        finally:
            self.turn.end()

    def perform_authentication(self, request: Request) -> None:
        """Authenticates the request, and counts it against the limit of its organization.

        A request with a wrong credential counts against its address, so that nobody can try many.
        """
        self._begin_turn(request._request)
        try:
            super().perform_authentication(request)
        except AppError:
            turn_keys.forget(request._request)
            self._count_request(None)
            raise
        organization_id = request.auth.organization_id if isinstance(request.auth, Actor) else None
        if organization_id is not None:
            turn_keys.remember(request._request, organization_id)
        self._count_request(organization_id)

    def _begin_turn(self, request: HttpRequest) -> None:
        """Takes the request's turn. Raises `TooManyAtOnce` where it does not come."""
        waits = partial(outside_transaction, "its turn", counts=False)
        self.turn.begin(
            turn_keys.key_of(request), waits if self.transaction.may_wait else nullcontext
        )

    def _count_request(self, organization_id: str | None) -> None:
        """Counts the request for its organization, or its address. Raises `RateLimited`.

        Should it wait later, it counts as one that does (`waiting.py`).
        """
        network = network_of(self.address)
        count_waiting(self.transaction, organization_id=organization_id, network=network)
        if not self.is_counted():
            return
        if organization_id is None:
            self.rate = count_address(network)
        else:
            self.rate = count_organization(organization_id)
        if not self.rate.allowed:
            raise RateLimited(self.rate)

    def is_counted(self) -> bool:
        """Whether the request counts against a limit. A view says no for what proved its sender."""
        return True

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticates, checks permissions, and ends a repeated POST with the stored answer.

        Raises `ValidationFailed` for a query parameter, or a body, that the operation does not
        take; `validated_input` does so for single fields of a body.
        """
        super().initial(request, *args, **kwargs)
        self._check_names()
        key = request.headers.get(idempotency.HEADER)
        if request.method != "POST" or key is None or not self.idempotent:
            return
        actor = request.auth if isinstance(request.auth, Actor) else None
        if actor is None:
            enter_organization(NO_ORGANIZATION)
        begun = idempotency.begin_attempt(
            organization_id=actor.organization_id if actor else NO_ORGANIZATION,
            actor=actor.name if actor else client_address(request._request),
            path=request.get_full_path(),
            key=key,
            body=request._request.body,
        )
        if isinstance(begun, idempotency.StoredAnswer):
            raise _Replay(begun)
        self.attempt = begun

    def handle_exception(self, exc: Exception) -> Response:
        """Answers with the stored answer of a repeated POST, and with a problem for an error."""
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
        """Stores the answer of a POST with an Idempotency-Key, and adds the common headers."""
        final = super().finalize_response(request, response, *args, **kwargs)
        final.headers.setdefault("Cache-Control", "no-store")
        if self.rate is not None:
            for name, value in self.rate.headers.items():
                # A view may have met another limit, whose headers matter more than those of this
                # one, unless the request was refused by this one.
                if not self.rate.allowed or name not in final.headers:
                    final.headers[name] = value
        succeeded = final.status_code < status.HTTP_400_BAD_REQUEST
        if self.attempt is not None and succeeded:
            body = b"" if response.data is None else _json_bytes(response.data)
            headers = {
                name: final.headers[name] for name in REPEATED_HEADERS if name in final.headers
            }
            idempotency.finish_attempt(
                self.attempt, status=final.status_code, body=body, headers=headers
            )
            self.attempt = None
        return final

    @property
    def actor(self) -> Actor:
        """The actor of the request. Raises `NotAuthenticated`."""
        return actor_of(self.request)

    @property
    def organization_id(self) -> str:
        """The id of the organization that the actor acts in."""
        return self.actor.organization_id

    @property
    def address(self) -> str:
        """The caller's network address."""
        return client_address(self.request._request)

    def _check_names(self) -> None:
        """Raises `ValidationFailed` for parameters or a body that the operation does not take."""
        errors = []
        if self.request.query_params:
            known = parameters_of(type(self), self._action())
            errors += unknown_parameters(self.request.query_params, known)
        takes_body = self.raw_bodies or self._action() in self.input_serializers
        if not takes_body and self.request.method not in SAFE_METHODS:
            errors += fields_without_use(self.request.data)
        if errors:
            raise ValidationFailed(errors=errors)

    @classmethod
    def takes_validate_only(cls, action: str) -> bool:
        """Returns whether an action or method takes the query parameter `validate_only`."""
        return action in cls.validates

    @classmethod
    def answers_pages(cls, action: str) -> bool:
        """Returns whether an action or method answers pages of a list."""
        return action in cls.lists or (action == "list" and action not in cls.single)

    @property
    def validate_only(self) -> bool:
        """The query parameter `validate_only`: check everything, change nothing."""
        text = self.request.query_params.get("validate_only", "false")
        if text not in {"true", "false"}:
            detail = "true or false is expected."
            raise ValidationFailed(errors=[FieldError("?validate_only", "invalid", detail)])
        return text == "true"

    def validated_input(self, **kwargs: Any) -> dict[str, Any]:
        """Returns the body's fields, as the serializer in `input_serializers` validated them.

        Raises `ValidationFailed`, also for fields that the serializer does not have, and for
        numbers that are given as text.
        """
        serializer_class = self.input_serializers[self._action()]
        # Without a body the framework gives the fields of an empty form.
        body = {} if isinstance(self.request.data, QueryDict) else self.request.data
        serializer = serializer_class(
            data=body, context={"request": self.request, "view": self}, **kwargs
        )
        errors = unknown_fields(serializer, body, shown=self._shown_fields)
        if not serializer.is_valid():
            errors += field_errors(ValidationError(dict(serializer.errors)))
        named = {error.pointer for error in errors}
        errors += [
            error for error in mistyped_fields(serializer, body) if error.pointer not in named
        ]
        if errors:
            raise ValidationFailed(errors=errors)
        data: dict[str, Any] = serializer.validated_data
        return data

    def _shown_fields(self) -> frozenset[str]:
        """Returns the names of fields that answers of this operation or resource have."""
        own = self.output_serializers.get(self._action())
        kinds = (own, getattr(self, "serializer_class", None))
        return frozenset().union(*(_names_of(kind) for kind in kinds if kind is not None))

    def query(self) -> dict[str, Any]:
        """Returns the query parameters, as the serializer in `query_serializers` validated them.

        Raises `ValidationFailed`, whose errors point to `?name`.
        """
        serializer_class = self.query_serializers[self._action()]
        parameters = self.request.query_params.dict()
        serializer = serializer_class(data=parameters)
        if not serializer.is_valid():
            raise ValidationFailed(
                errors=[
                    FieldError(f"?{name}", "invalid", str(messages[0]))
                    for name, messages in dict(serializer.errors).items()
                ]
            )
        mistyped = mistyped_parameters(serializer, parameters)
        if mistyped:
            raise ValidationFailed(errors=mistyped)
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
        """Returns the answer for a service's result; a `Response` is returned as it is."""
        if isinstance(result, Response):
            return result
        kind = serializer or self.output_serializer()
        data = kind(result, context={"request": self.request, "view": self}).data
        return Response(data, status=status, headers={**etags.headers(result), **(headers or {})})

    def page(
        self,
        items: Sequence[Any],
        *,
        key: Any,
        page_max: int | None = None,
        complete: Callable[[list[Any]], list[Any]] | None = None,
    ) -> Response:
        """Returns the answer for a page of items in memory, in the order of a unique text key.

        A page has no more than `page_max` items. `complete` gets its items with all that they show.
        """
        page, cursor = page_of(
            self.request, items, key=key, limit_max=self.limit_max, page_max=page_max
        )
        page = complete(page) if complete else page
        kind = self.output_serializer()
        data = kind(page, many=True, context={"request": self.request, "view": self}).data
        return Response({"items": data, "next_cursor": cursor})

    def refuse(self, error: AppError) -> Response:
        """Returns the answer for an error. Unlike raising it, this commits the transaction."""
        return Response(
            problem(error), status=error.status, headers=headers(error), content_type=CONTENT_TYPE
        )

    def output_serializer(self) -> SerializerType:
        """Returns the serializer of this action's answers."""
        own = self.output_serializers.get(self._action())
        kind: SerializerType = own or getattr(self, "serializer_class")  # noqa: B009
        return kind

    def _action(self) -> str:
        return getattr(self, "action", None) or self.request.method or ""


class ApiView(ApiMixin):
    """One endpoint that is not a resource: a subclass defines `get`, `post`, ….

    The mappings of serializers are keyed by method.
    """

    serializer_class: ClassVar[SerializerType | None] = None


class ApiViewSet(ApiMixin, GenericViewSet[Any]):
    """A resource that is not a row: a subclass defines `list`, `create`, `retrieve`, ….

    The mappings of serializers are keyed by action.
    """

    filter_backends = ()
    lookup_url_kwarg = "id"
    # The pattern of an item's part of the path.
    lookup_value_regex = r"[a-z]+_[a-z2-7]+"


class ResourceViewSet(ApiViewSet):
    """Rows of an organization. `queryset` may have all rows: it is narrowed here.

    A subclass combines it with action mixins, and implements the `perform_…` that they call.
    """

    lookup_field = "pk"
    # The path, in Django's notation, from a row to its organization's id.
    organization_field: ClassVar[str] = "organization_id"
    # The path from a row to its project's id, where roles in projects count.
    project_field: ClassVar[str | None] = None
    list_ordering: ClassVar[tuple[str, ...]] = ("-created_at", "-id")
    # Whether a request that changes a row locks it. A view whose changes wait takes a lock by name
    # instead, before it reads the row: a locked row is let go with a wait.
    locks_rows: ClassVar[bool] = True

    def get_queryset(self) -> QuerySet[Any]:
        """Returns rows of the actor's organization and readable projects.

        It is the first of the two guards of tenancy; `console.base.common.tenancy` is the second.
        """
        if getattr(self, "swagger_fake_view", False):
            return super().get_queryset().none()
        rows = super().get_queryset().filter(**{self.organization_field: self.organization_id})
        readable = self.actor.projects_with(Permission.READ)
        if self.project_field is None or readable is None:
            return rows
        return rows.filter(**{f"{self.project_field}__in": readable})

    def project_of(self, row: Any) -> str | None:
        """Returns the id of a row's project; None if roles in projects do not count."""
        if self.project_field is None:
            return None
        for name in self.project_field.split("__"):
            row = getattr(row, name)
        return str(row)

    def get_object(self) -> Any:
        """Returns the row that the path names, locked if the request changes it.

        Raises `NotFound`, `PermissionDenied`, and `PreconditionFailed` if `If-Match` does not name
        the row's generation.
        """
        queryset = self.filter_queryset(self.get_queryset())
        changes = self.request.method not in SAFE_METHODS
        if changes and self.locks_rows:
            queryset = queryset.select_for_update(of=("self",))
        row = queryset.filter(**{self.lookup_field: self.kwargs[self.lookup_url_kwarg]}).first()
        if row is None:
            raise NotFound
        self.check_object_permissions(self.request, row)
        if changes:
            etags.check_if_match(self.request, row)
        return row

    def validated(self, change: Any) -> Response:
        """Runs a change and rolls it back: answers 200 `{"valid": true}` if it raised nothing."""
        self.tried(change)
        return Response({"valid": True})

    def tried(self, change: Callable[[], Result]) -> Result:
        """Runs a change and rolls it back; returns its result.

        Afterwards the request may wait again, because nothing that it wrote is left.
        """
        audited = len(self.transaction.deferred)
        with transaction.atomic():
            result = change()
            transaction.set_rollback(True)
        del self.transaction.deferred[audited:]
        forget_tried()
        return result


class ListAction(ResourceViewSet):
    """`GET` of the collection: keyset pages."""

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One page of rows."""
        rows = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        kind = self.output_serializer()
        context = {"request": self.request, "view": self}
        return self.get_paginated_response(kind(rows, many=True, context=context).data)


class RetrieveAction(ResourceViewSet):
    """`GET` of one row, with its ETag."""

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """One row."""
        return self.answer(self.get_object())


class CreateAction(ResourceViewSet):
    """`POST` to the collection. `validate_only=true` runs the service and takes it back."""

    @classmethod
    def takes_validate_only(cls, action: str) -> bool:
        """Returns whether an action takes `validate_only`: `create` does."""
        return action == "create" or super().takes_validate_only(action)

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A new row: 201 with its `Location`, or what `perform_create` answers itself."""
        data = self.validated_input()
        if self.validate_only:
            return self.validated(lambda: self.perform_create(data))
        result = self.perform_create(data)
        place = {}
        if isinstance(result, Model):
            place["Location"] = f"{self.request.path}/{result.pk}"
        return self.answer(result, status=status.HTTP_201_CREATED, headers=place)

    def perform_create(self, data: dict[str, Any]) -> object:
        """Calls the service; returns what the output serializer takes, or a `Response`."""
        raise NotImplementedError


class UpdateAction(ResourceViewSet):
    """`PATCH` of one row; only the members that the body has change."""

    @classmethod
    def takes_validate_only(cls, action: str) -> bool:
        """Returns whether an action takes `validate_only`: `partial_update` does."""
        return action == "partial_update" or super().takes_validate_only(action)

    def partial_update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The row after the change, with its new ETag; with `validate_only` as it would be."""
        instance = self.get_object()
        data = self.validated_input(partial=True)
        if self.validate_only:
            would_be = self.tried(lambda: self.answer(self.perform_update(instance, data)))
            return Response(would_be.data)
        return self.answer(self.perform_update(instance, data))

    def perform_update(self, instance: Any, data: dict[str, Any]) -> object:
        """Calls the service; returns the row, or a `Response`."""
        raise NotImplementedError


class DestroyAction(ResourceViewSet):
    """`DELETE` of one row."""

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """204, or what `perform_destroy` answers itself."""
        result = self.perform_destroy(self.get_object())
        if isinstance(result, Response):
            return result
        return Response(status=status.HTTP_204_NO_CONTENT)

    def perform_destroy(self, instance: Any) -> object:
        """Calls the service; returns None, or a `Response`."""
        raise NotImplementedError


# By view and action: to make a serializer costs more than to look at a query.
_PARAMETERS: dict[tuple[object, str], frozenset[str]] = {}


def parameters_of(view: type[ApiMixin], action: str) -> frozenset[str]:
    """Returns the names of the query parameters that an action or method of a view takes."""
    known = _PARAMETERS.get((view, action))
    if known is not None:
        return known
    names = _names_of(view.query_serializers[action]) if action in view.query_serializers else ()
    paging = PAGING if view.answers_pages(action) else ()
    validating = ("validate_only",) if view.takes_validate_only(action) else ()
    known = frozenset((*names, *paging, *validating))
    _PARAMETERS[view, action] = known
    return known


def _names_of(serializer_class: SerializerType) -> frozenset[str]:
    """Returns the names of a serializer's fields."""
    return frozenset(getattr(serializer_class(), "fields", ()))


class _Replay(Exception):
    """Raised to end a repeated request with the stored answer of the first."""

    def __init__(self, answer: idempotency.StoredAnswer) -> None:
        super().__init__()
        self.answer = answer


def _json_bytes(data: object) -> bytes:
    rendered: bytes = JSONRenderer().render(data)
    return rendered
