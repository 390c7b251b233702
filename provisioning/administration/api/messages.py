"""Endpoints of records: browse, produce, and watch them arrive."""

from __future__ import annotations

from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework import status
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from console.base.common.actor import Permission
from provisioning import kafka
from provisioning.administration.api import message_serializers as shapes
from provisioning.administration.api import streams
from provisioning.administration.services import messages
from provisioning.administration.services.readings import ReadPart, note_reading
from provisioning.clusters.api import examples
from provisioning.clusters.api.bases import ClusterViewSet

# How long reading a page may take; with a filter, many records are read for few that are shown.
TIMEOUT_S = 5.0
SCAN_TIMEOUT_S = 10.0


class EventStreamRenderer(BaseRenderer):
    """Accepts `text/event-stream`, the only type that a browser's EventSource asks for."""

    media_type = "text/event-stream"
    format = "event-stream"

    def render(self, data: Any, *args: Any, **kwargs: Any) -> bytes:
        """An error's problem document as JSON; the events themselves do not come through here."""
        rendered: bytes = JSONRenderer().render(data)
        return rendered


class MessageViewSet(ClusterViewSet):
    """Records of a topic. Looking at them commits nothing and joins no group.

    What is produced and read here is metered as that of any client, for the API key or the member
    that asks: `ingress_bytes` are those of the batch that is written, `egress_bytes` those of all
    batches that brokers read out for a page, also of records that a filter leaves out.

    Reading takes the right `data.read`, and the audit log says who read which offsets.
    """

    permissions_required = {"list": Permission.DATA_READ}

    serializer_class = shapes.MessagePageSerializer
    input_serializers = {"create": shapes.ProduceSerializer}
    output_serializers = {"create": shapes.ProducedSerializer}
    query_serializers = {
        "list": shapes.BrowseQuerySerializer,
        "create": shapes.WakeQuerySerializer,
    }
    single = ("list",)
    # 409 where the cluster sleeps and `wake` is false.
    conflicts = ("list",)
    examples = examples.MESSAGES

    def list(self, request: Request, name: str, **kwargs: Any) -> Response:
        """A page of records: the newest, or forward from the oldest, an offset or a moment.

        Of several partitions the records of a page are merged by time. Where limits of bytes or
        time end it, the next page may have earlier records of another partition, and none is
        missing. With a `filter` a page may have few records or none although there are more:
        `scanned` says how far it was looked, and `next_cursor` goes on from there. Batches that
        cannot be decoded are skipped, and listed as `damaged`. All batches that were read are
        metered as `egress_bytes` of the caller, with what a filter leaves out; batches are read as
        a whole. It takes the right `data.read`; the audit log says who read which offsets
        (`message.begin_reading`, then `message.read`).
        """
        query = self.query()
        start = query["from"]
        browse = kafka.Browse(
            start=start,
            value=query.get(start, 0),
            partitions=[query["partition"]] if "partition" in query else None,
            positions=query.get("cursor", {}),
            limit=query["limit"],
            bytes_max=query["scan_bytes_max"],
            timeout_s=SCAN_TIMEOUT_S if "filter" in query else TIMEOUT_S,
            filter=query.get("filter"),
            shown_max=query["shown_max"],
        )
        page = messages.browse_messages(
            actor=self.actor, cluster=self.cluster, topic=name, browse=browse, wake=query["wake"]
        )
        return Response(
            {
                "items": [shapes.shown_record(record) for record in page.records],
                "next_cursor": shapes.write_positions(page.positions),
                "stopped": page.stopped,
                "scanned": {
                    "records": page.records_read,
                    "bytes": page.bytes_read,
                    "partitions": shapes.ReachedSerializer(page.reached, many=True).data,
                },
                "damaged": [shapes.shown_damage(batch) for batch in page.damaged],
            }
        )

    def create(self, request: Request, name: str, **kwargs: Any) -> Response:
        """Produces one record; it is durable when this returns.

        It is metered as `ingress_bytes` of the caller.
        """
        produced = messages.produce_message(
            actor=self.actor,
            cluster=self.cluster,
            topic=name,
            record=shapes.new_record(self.validated_input()),
            wake=self.query()["wake"],
        )
        return Response(shapes.ProducedSerializer(produced).data, status=status.HTTP_201_CREATED)


class MessageStreamViewSet(ClusterViewSet):
    """Records as they arrive, as Server-Sent Events."""

    permissions_required = {"list": Permission.DATA_READ}

    renderer_classes = (JSONRenderer, EventStreamRenderer)
    serializer_class = shapes.MessageSerializer
    query_serializers = {"list": shapes.StreamQuerySerializer}
    examples = examples.STREAM
    single = ("list",)
    conflicts = ("list",)

    def list(self, request: Request, name: str, **kwargs: Any) -> HttpResponseBase:
        """Watches a topic, from its end or from the `Last-Event-ID` of an earlier stream.

        Events: `live` (what is written from now on is shown), `message` (a record), `skipped`
        (`{"count": n}`, where records come faster than they are shown), `damaged` (a batch that
        cannot be decoded and was skipped, as in a page of messages), `progress` (with a `filter`,
        `{"records": n, "bytes": n}` looked at since the beginning), `end` (`{"reason": …}`: ask
        again, but for `access_ended`, which follows within 5 seconds of a revoked key or an ended
        session, and for `unreadable`, where something cannot be read at all). At most ten minutes.
        What is read of the log for the stream is metered as `egress_bytes` of the caller, with what
        a filter leaves out. It takes the right `data.read`, and is audited as a page is.
        """
        query = self.query()
        messages.require_fetch(cluster=self.cluster)
        access = messages.access_for(
            actor=self.actor, cluster=self.cluster, topic=name, wake=query["wake"]
        )
        positions = streams.positions_of(request.headers.get("Last-Event-ID"))
        text = query.get("filter")
        stream = streams.Stream(self.actor, self.cluster, access, name, positions, text)
        try:
            note_reading(
                actor=self.actor, cluster=self.cluster, topic=name, read=ReadPart(live_tails=1)
            )
        except BaseException:
            stream.close()
            raise
        response = StreamingHttpResponse(stream, content_type="text/event-stream")
        response.headers["Cache-Control"] = "no-store"
        response.headers["X-Accel-Buffering"] = "no"
        return response
