"""Admits a page to a stream of `console.web.watching`."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.api.views import ApiView
from console.base.common.concurrency import concurrency, counts_of
from console.base.common.conf import config
from console.base.common.errors import FieldError, ValidationFailed
from console.base.common.requests import network_of
from console.web.watching import COUNTED_S, SCOPE, Admission, Watched

# The name of the published limit.
LIMIT = "watches"
ADDRESSES_MAX = 40
PACES_S = (2.0, 60.0)
# `2:/api/v1/clusters?limit=100`, in printable ASCII, as browsers write addresses.
ENTRY = re.compile(r"(?P<pace>\d{1,2}):(?P<address>/api/v1/[!-~]{1,1000})")
# Streams of their own, and what waits for a change of its own accord.
UNWATCHED = re.compile(r"/stream(\?|$)|[?&]wait=")


class NoSerializer(serializers.Serializer[Any]):
    """The answer to a page that is not admitted has no members of its own."""


class WatchQuerySerializer(serializers.Serializer[Any]):
    """The addresses that a page reads again and again, which `WatchView` checks itself."""

    read = serializers.ListField(child=serializers.CharField())


class WatchView(ApiView):
    """`GET /api/v1/watch?read=2:/api/v1/clusters&read=…`: for the console, and not in OpenAPI."""

    schema = None
    serializer_class = NoSerializer
    query_serializers = {"GET": WatchQuerySerializer}
    in_projects: ClassVar[bool] = True

    def get(self, request: Request) -> Response:
        """Takes a place for the stream that follows. Raises `TooManyAtOnce` where there is none."""
        watched = [_watched(entry) for entry in request.query_params.getlist("read")]
        if not 0 < len(watched) <= ADDRESSES_MAX:
            raise _invalid(f"1 to {ADDRESSES_MAX} addresses are expected.")
        admission = getattr(request._request, "scope", {}).get(SCOPE)
        if isinstance(admission, Admission):
            counts = counts_of(
                LIMIT,
                organization_id=self.organization_id,
                network=network_of(self.address),
                shared_max=config().web.watches_max,
            )
            admission.place = concurrency().take(counts, lasts_s=COUNTED_S)
            admission.watched = watched
        return self.answer({})


def watches_used(organization_id: str, cluster_id: str) -> int:
    """The number of an organization's streams that are open. `cluster_id` is ignored."""
    return concurrency().used(LIMIT, organization_id)


def _watched(entry: str) -> Watched:
    """Reads one address with its pace. Raises `ValidationFailed`."""
    match = ENTRY.fullmatch(entry)
    if match is None or UNWATCHED.search(match["address"]):
        raise _invalid("Seconds, a colon and an address of the API are expected.")
    least, most = PACES_S
    return Watched(min(max(float(match["pace"]), least), most), match["address"])


def _invalid(detail: str) -> ValidationFailed:
    return ValidationFailed(errors=[FieldError("?read", "invalid", detail)])
