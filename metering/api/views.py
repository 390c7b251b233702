"""Endpoints of usage."""

from __future__ import annotations

import json
from datetime import MAXYEAR, datetime
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from console.base.accounts.principals import names_of_principals
from console.base.common.api.pagination import (
    KeysetPagination,
    page_limit,
    read_cursor,
    write_cursor,
)
from console.base.common.api.views import ApiView, ApiViewSet, ListAction, RetrieveAction
from console.base.common.errors import FieldError, ValidationFailed
from console.base.common.visibility import readable_clusters
from metering.api import examples
from metering.api import serializers as shapes
from metering.models import ReconciledDay, UsageRow
from metering.services.stored import stored_now
from metering.services.tracing import trace_row
from metering.services.usage import (
    ORDER,
    After,
    UsageQuery,
    complete_until,
    list_usage,
    topic_names,
)


class UsagePagination(KeysetPagination):
    """Pages of usage say up to when nothing is missing."""

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The page's shape in the OpenAPI file."""
        page = super().get_paginated_response_schema(schema)
        page["required"] = [*page["required"], "complete_until"]
        page["properties"] = {
            **page["properties"],
            "complete_until": {
                "type": ["string", "null"],
                "format": "date-time",
                "description": "Of windows before this time nothing is missing. Null: unknown.",
                "example": "2026-11-21T14:00:00Z",
            },
        }
        return page


class UsageViewSet(ApiViewSet):
    """Usage by time. Whoever has roles in projects only sees that of those projects' clusters."""

    in_projects = True
    serializer_class = shapes.UsageItemSerializer
    query_serializers = {"list": shapes.UsageQuerySerializer}
    pagination_class = UsagePagination
    examples = examples.USAGE
    limit_max = 2_000

    def list(self, request: Request, **kwargs: Any) -> Response:
        """Usage in the order of time.

        By day, and without grouping, the items are the very rows that invoices name. Hours of past
        days are kept for 25 months; each has the id of its day's row. A page of them may have
        fewer items than `limit`, or none, although `next_cursor` leads to more.
        """
        values = self.query()
        clusters = readable_clusters(self.actor)
        query = UsageQuery(
            organization_id=self.organization_id,
            clusters=None if clusters is None else tuple(clusters),
            **_without_nulls(values),
        )
        limit = page_limit(request, self.limit_max)
        page = list_usage(query, limit=limit, after=_place_after(request))
        behind = page.after
        return Response(
            {
                "items": shapes.UsageItemSerializer(page.items, many=True).data,
                "next_cursor": behind and write_cursor(_cursor_parts(behind)),
                "complete_until": _time_text(complete_until(query)),
            }
        )


class StoredView(ApiView):
    """How many bytes topics hold now.

    Of a sleeping cluster too, which is metered once an hour. Whoever has roles in projects only
    sees that of those projects' clusters.
    """

    in_projects = True
    serializer_class = shapes.StoredSerializer
    query_serializers = {"GET": shapes.StoredQuerySerializer}
    examples = examples.SHOW_STORED

    def get(self, request: Request) -> Response:
        """Shows what is stored now."""
        readable = readable_clusters(self.actor)
        clusters = stored_now(self.organization_id, clusters=readable, **self.query())
        return self.answer(
            {
                "bytes": sum(cluster.bytes for cluster in clusters),
                "at": min((cluster.at for cluster in clusters), default=None),
                "clusters": clusters,
            }
        )


class UsageRowViewSet(RetrieveAction):
    """Rolled-up rows, one at a time."""

    in_projects = True
    queryset = UsageRow.objects.select_related("run", "run__pointer")
    serializer_class = shapes.UsageRowSerializer
    examples = examples.ROWS
    lookup_value_regex = "ur_[a-z2-7]+"

    def filter_queryset(self, queryset: Any) -> Any:
        """Rows of the clusters that the actor may see."""
        clusters = readable_clusters(self.actor)
        return queryset if clusters is None else queryset.filter(cluster_id__in=clusters)

    def retrieve(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """A row that an invoice names, and the usage files and lanes that it comes from."""
        row = self.get_object()
        topic = (row.cluster_id, row.topic_id)
        name = topic_names([topic]).get(topic)
        people = readable_clusters(self.actor) is None
        names = names_of_principals(self.organization_id, [row.principal], of_people=people)
        principal = names.get(row.principal)
        return self.answer(shapes.shown_row(row, name, principal, trace_row(row)))


class ReconciledDayViewSet(ListAction):
    """How metered ingress compares with the log itself."""

    queryset = ReconciledDay.objects.all()
    serializer_class = shapes.ReconciledDaySerializer
    query_serializers = {"list": shapes.ReconciledDayQuery}
    examples = examples.RECONCILIATIONS
    list_ordering = ("-day", "-id")

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """By cluster and day, the newest day first.

        Each night the bytes of a day's usage are compared with those of the segments that hold the
        records: two ways of counting that know nothing of each other.
        """
        return super().list(request, *args, **kwargs)

    def filter_queryset(self, queryset: Any) -> Any:
        """Only the comparisons of one cluster and of a span of days, where the query names them."""
        names = {"cluster_id": "cluster_id", "from": "day__gte", "to": "day__lt"}
        return queryset.filter(**{names[name]: value for name, value in self.query().items()})


def _without_nulls(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _cursor_parts(place: After) -> list[str]:
    """A place in the list as texts for a cursor.

    Each part is JSON, because a principal may have characters that a cursor cannot hold.
    """
    start, *rest = place
    return [json.dumps(part) for part in (start.isoformat(), *rest)]


def _place_after(request: Request) -> After | None:
    parts = read_cursor(request, len(ORDER))
    if parts is None:
        return None
    try:
        start, meter, cluster_id, topic_id, principal, billed = map(json.loads, parts)
        moment = datetime.fromisoformat(start)
        texts = (meter, cluster_id, topic_id, principal)
        if not all(isinstance(text, str) and "\0" not in text for text in texts):
            raise TypeError
        # A window is added to it, and it is counted from 1970.
        if not 1970 <= moment.year < MAXYEAR:
            raise ValueError
        if moment.tzinfo is None or not isinstance(billed, bool):
            raise TypeError
        "".join(texts).encode()
    except (RecursionError, TypeError, ValueError) as error:
        detail = "This is not a cursor of this list. Take `next_cursor` of an earlier page."
        raise ValidationFailed(detail, errors=[FieldError("?cursor", "invalid", detail)]) from error
    return moment, meter, cluster_id, topic_id, principal, billed


def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
