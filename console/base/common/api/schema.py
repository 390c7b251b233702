"""What the OpenAPI file has for every endpoint alike: parameters, answers, problems, access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

from console.base.common.api.permissions import ActorMay, Anyone, needed_permission
from console.base.common.api.problem_serializers import ProblemSerializer, ValidatedSerializer

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description=(
        "Any text of at most 255 characters that is new for each intended change. A repeat of the "
        "request within 24 hours gets the same answer, and the change happens once."
    ),
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The ETag that the change is based on; another one is answered by 412.",
)
VALIDATE_ONLY = OpenApiParameter(
    "validate_only", OpenApiTypes.BOOL, description="Check everything, change nothing."
)
PROBLEMS = {
    "400": "Malformed, or against a rule; `code` says which.",
    "401": "No credential, or one that is unknown, expired or revoked.",
    "403": "The role does not allow it, or a limit is reached.",
    "404": "The resource is absent, or another organization's.",
    "409": "The resource's state does not allow it now.",
    "412": "If-Match names another generation.",
    "413": "The body is longer than the operation accepts.",
    "415": "The body is not JSON.",
    "422": "Invalid values; `errors` says where.",
    "429": "Too many requests; `Retry-After` says when to try again.",
    "503": "A part of the service does not answer; `Retry-After` says when to try again.",
}


class Schema(AutoSchema):
    """drf-spectacular's description of a view, by this project's conventions."""

    def get_request_serializer(self) -> Any:
        """Returns the serializer of the body, from `input_serializers`."""
        inputs = getattr(self.view, "input_serializers", {})
        if self.method in {"GET", "HEAD", "DELETE"}:
            return None
        return inputs.get(self._key())

    def get_response_serializers(self) -> Any:
        """Returns the serializer of a success, from `output_serializers` or `serializer_class`."""
        outputs = getattr(self.view, "output_serializers", {})
        kind = outputs.get(self._key()) or getattr(self.view, "serializer_class", None)
        if self.method == "DELETE" and self._key() not in outputs:
            return {204: None}
        if kind is None:
            return {204: None}
        created = self._key() == "create" or getattr(self.view, "creates", False)
        if self.method == "POST" and created:
            return {201: kind}
        return kind

    def get_override_parameters(self) -> list[Any]:
        """Returns the headers and the query parameters that the operation takes.

        Those of pages come from the paginator. `ApiMixin` refuses all others.
        """
        parameters: list[Any] = []
        queries = getattr(self.view, "query_serializers", {})
        if self._key() in queries:
            parameters.append(queries[self._key()])
        if self._view_says("takes_validate_only"):
            parameters.append(VALIDATE_ONLY)
        if self.method == "POST" and getattr(self.view, "idempotent", True):
            parameters.append(IDEMPOTENCY_KEY)
        if self.method in {"PATCH", "DELETE"} and "{" in self.path:
            parameters.append(IF_MATCH)
        return parameters

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """Adds the problems that the endpoint may answer, and the permission that it requires."""
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        open_to_all = any(isinstance(p, Anyone) for p in self.view.get_permissions())
        body = getattr(self.view, "input_serializers", {}).get(self._key())
        if self.method == "DELETE" and body is not None:
            # drf-spectacular describes no body of a DELETE, which HTTP allows.
            schema = self.resolve_serializer(body, "request").ref
            examples = {
                example.name: {"value": example.value}
                for example in self.get_examples()
                if example.request_only
            }
            operation["requestBody"] = {
                "content": {"application/json": {"schema": schema, "examples": examples}},
                "required": self._key() not in getattr(self.view, "optional_bodies", ()),
            }
        if self._view_says("takes_validate_only"):
            self._add_validated(operation["responses"])
        for code in PROBLEMS:
            if self._answers(code, open_to_all=open_to_all):
                operation["responses"].setdefault(code, self._problem(code))
        if open_to_all:
            operation["security"] = []
        elif any(isinstance(p, ActorMay) for p in self.view.get_permissions()):
            operation["x-permission"] = str(needed_permission(self.method, self.view))
        return operation

    def get_examples(self) -> Any:
        """Returns the view's examples of this action or method: `examples = {"create": […]}`."""
        return getattr(self.view, "examples", {}).get(self._key(), [])

    def _key(self) -> str:
        return getattr(self.view, "action", None) or self.method

    def _view_says(self, question: str) -> bool:
        """Returns the answer of a class method of `ApiMixin` about this operation."""
        answer = getattr(self.view, question, None)
        return answer is not None and bool(answer(self._key()))

    def _is_list_view(self, serializer: Any = None) -> bool:
        return self._view_says("answers_pages")

    def _answers(self, code: str, *, open_to_all: bool) -> bool:
        """Returns whether the endpoint can answer a status.

        Each endpoint can refuse a parameter, and each that changes something a body.
        """
        changes = self.method not in {"GET", "HEAD"}
        conflicts = self._key() in getattr(self.view, "conflicts", ())
        signs_in = self._key() in getattr(self.view, "signs_in", ())
        return {
            "401": not open_to_all or signs_in,
            "404": "{" in self.path,
            "409": changes or conflicts,
            "412": self.method in {"PATCH", "DELETE"} and "{" in self.path,
            "413": changes,
            "415": changes,
        }.get(code, True)

    def _problem(self, code: str) -> dict[str, Any]:
        """Returns a reference to the one description of a status, which all endpoints share."""
        shared = ResolvedComponent(  # type: ignore[no-untyped-call]
            name=f"Problem{code}", type="responses", object=code
        )
        if shared not in self.registry:
            shared.schema = self._get_response_for_code(  # type: ignore[no-untyped-call]
                OpenApiResponse(ProblemSerializer, description=PROBLEMS[code]),
                "4xx",
                media_types=["application/problem+json"],
            )
            self.registry.register(shared)
        return dict(shared.ref)

    def _add_validated(self, responses: dict[str, Any]) -> None:
        """Adds the answer of `validate_only`, unless a success of the endpoint is a 200 itself."""
        if "200" not in responses:
            responses["200"] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                OpenApiResponse(ValidatedSerializer, description="With `validate_only`."), "200"
            )


def sort_schema(
    result: dict[str, Any], generator: object, request: object, public: object
) -> dict[str, Any]:
    """Sorts the paths of the OpenAPI file, so that a change of the code changes few lines of it."""
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def close_requests(
    result: dict[str, Any], generator: object, request: object, public: object
) -> dict[str, Any]:
    """Says of the objects in bodies of requests that they have no other fields than those named."""
    schemas = result["components"]["schemas"]
    operations = (operation for item in result["paths"].values() for operation in item.values())
    names = {name for one in operations for name in _references(one.get("requestBody", {}))}
    closed: set[str] = set()
    while names:
        name = names.pop()
        closed.add(name)
        names |= set(_references(schemas[name])) - closed
        if "properties" in schemas[name]:
            schemas[name].setdefault("additionalProperties", False)
    return result


def _references(part: object) -> Iterator[str]:
    """Yields the names of the schemas that a part of an OpenAPI file refers to."""
    if isinstance(part, list):
        for inner in part:
            yield from _references(inner)
    elif isinstance(part, dict):
        for name, inner in part.items():
            if name == "$ref":
                yield str(inner).rpartition("/")[2]
            else:
                yield from _references(inner)
