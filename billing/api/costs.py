"""What a month costs so far."""

from __future__ import annotations

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api import budget_examples
from billing.estimate import Estimate, estimate_month
from billing.models import PriceVersion
from billing.periods import month_of, parse_month
from console.base.common.api.views import ApiView
from console.base.common.api.whole import WholeField
from console.base.common.clock import now
from console.base.common.errors import FieldError, ValidationFailed
from console.base.common.visibility import readable_clusters

NAME_TEXT = (
    "The name of the credential or the API key, or the member's address; null where it is not "
    "known, or the caller sees the clusters of some projects only."
)


class ShareSerializer(serializers.Serializer[Any]):
    """A part of the costs, of which an answer has hundreds.

    It writes its members itself, as `Serializer` does, which looks at each field for much longer.
    """

    # The members that name the part.
    names: ClassVar[tuple[str, ...]]

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """The members of a share."""
        return {
            **{name: getattr(instance, name) for name in self.names},
            "meters": [_show_part(part) for part in instance.meters],
            "amount_minor": instance.amount_minor,
        }


def _show_part(part: Any) -> dict[str, Any]:
    return {
        "meter": part.meter,
        "quantity": str(part.quantity),
        "amount_minor": part.amount_minor,
    }


class CostLineSerializer(serializers.Serializer[Any]):
    """One meter of one cluster. Quantities are bytes, byte-minutes or partition-minutes."""

    meter = serializers.CharField(source="rated.meter")
    cluster_id = serializers.CharField(source="rated.cluster_id")
    cluster = serializers.CharField()
    quantity = WholeField(source="rated.quantity")
    free_quantity = WholeField(
        source="rated.free_quantity", help_text="The part that the free allowance covers."
    )
    unit = serializers.CharField(source="rated.unit", help_text="The unit that the price is for.")
    unit_price = serializers.SerializerMethodField()
    amount_minor = serializers.IntegerField(source="rated.amount_minor")
    forecast_quantity = WholeField(help_text="Expected at the month's end.")
    forecast_minor = serializers.IntegerField(help_text="Expected at the month's end.")

    def get_unit_price(self, line: Any) -> str:
        """The price of a unit, in major units of the currency, as a decimal."""
        return f"{line.rated.unit_price.normalize():f}"

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """The members of a line, written as those of a `ShareSerializer`."""
        rated = instance.rated
        return {
            "meter": rated.meter,
            "cluster_id": rated.cluster_id,
            "cluster": instance.cluster,
            "quantity": str(rated.quantity),
            "free_quantity": str(rated.free_quantity),
            "unit": rated.unit,
            "unit_price": self.get_unit_price(instance),
            "amount_minor": rated.amount_minor,
            "forecast_quantity": str(instance.forecast_quantity),
            "forecast_minor": instance.forecast_minor,
        }


class MeterPartSerializer(serializers.Serializer[Any]):
    """What one meter has of a part of the month's costs."""

    meter = serializers.CharField()
    quantity = WholeField(
        help_text="In bytes, byte-minutes or partition-minutes: the sum of the billed usage rows."
    )
    amount_minor = serializers.IntegerField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """The members of a part."""
        return _show_part(instance)


class ClusterShareSerializer(ShareSerializer):
    """The part of the month's costs that one cluster has."""

    names = ("cluster_id", "cluster", "billed_minor", "forecast_minor")

    cluster_id = serializers.CharField()
    cluster = serializers.CharField()
    billed_minor = serializers.IntegerField(
        help_text="Its part of the month's `total_minor`: traffic beyond a suspending budget is "
        "left out by each cluster's share of the traffic."
    )
    forecast_minor = serializers.IntegerField(help_text="Its part of the month's `forecast_minor`.")
    meters = MeterPartSerializer(many=True)
    amount_minor = serializers.IntegerField(
        help_text="The sum of its lines, before any budget counts."
    )


class DayShareSerializer(serializers.Serializer[Any]):
    """The part of the month's costs that one day has, by its share of what was used.

    What is free in a month is free on all of its days alike, and not on its first days alone.
    """

    day = serializers.DateField(help_text="In UTC.")
    meters = MeterPartSerializer(many=True)
    amount_minor = serializers.IntegerField()


class TopicShareSerializer(ShareSerializer):
    """The part of the costs that one topic has.

    The last item may be the part of all other topics together; then every name is null.
    """

    names = ("cluster_id", "cluster", "topic_id", "topic")

    cluster_id = serializers.CharField(allow_null=True)
    cluster = serializers.CharField(allow_null=True)
    topic_id = serializers.CharField(allow_null=True)
    topic = serializers.CharField(allow_null=True)
    meters = MeterPartSerializer(many=True)
    amount_minor = serializers.IntegerField()


class PrincipalShareSerializer(ShareSerializer):
    """The part of the costs that one principal has; empty for storage, which no principal causes.

    A Kafka client's principal is `User:` and its name. Who produces and reads records by REST pays
    as `ApiKey:` or `Member:` with the id of the key or the user.

    The last item may be the part of all other principals together; then every name is null.
    """

    names = ("cluster_id", "cluster", "principal", "principal_name")

    cluster_id = serializers.CharField(allow_null=True)
    cluster = serializers.CharField(allow_null=True)
    principal = serializers.CharField(allow_null=True, allow_blank=True)
    principal_name = serializers.CharField(allow_null=True, help_text=NAME_TEXT)
    meters = MeterPartSerializer(many=True)
    amount_minor = serializers.IntegerField()


class CostsSerializer(serializers.Serializer[Any]):
    """A month before taxes, in minor units (cents). Every kind of share sums to the lines' sum."""

    month = serializers.SerializerMethodField(help_text="YYYY-MM.")
    currency = serializers.CharField()
    total_minor = serializers.IntegerField(
        help_text="What the lines cost, less `beyond_budget_minor`."
    )
    beyond_budget_minor = serializers.IntegerField(
        help_text="What is not billed: traffic that slipped past a budget with the action "
        "`suspend`."
    )
    forecast_minor = serializers.IntegerField(
        help_text=(
            "`total_minor` at the month's end: traffic as fast as on average so far, storage and "
            "partitions as many as there are now. Traffic that is refused at present is expected "
            "to stay refused, and what is slowed down to stay at its rate."
        )
    )
    lines = CostLineSerializer(many=True)
    by_meter = MeterPartSerializer(many=True)
    by_cluster = ClusterShareSerializer(many=True)
    by_topic = TopicShareSerializer(many=True)
    by_principal = PrincipalShareSerializer(many=True)
    by_day = DayShareSerializer(many=True)
    provisional_until = serializers.DateTimeField(
        allow_null=True, help_text="Usage up to this time is included; null where none is known."
    )
    trial_left = serializers.DictField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="For an organization without a payment method: what is left of its trial, by "
        "meter, in bytes, byte-minutes or partition-minutes. Once a meter is at 0, clusters refuse "
        "produce and fetch. Empty where it has no trial; null where it needs none, and for who "
        "sees only some clusters.",
    )

    def get_month(self, costs: Estimate) -> str:
        """The month, as `YYYY-MM`."""
        return f"{costs.month:%Y-%m}"


class CostsQuerySerializer(serializers.Serializer[Any]):
    """The parameters of the query."""

    month = serializers.CharField(
        required=False, max_length=7, help_text="YYYY-MM; without it the current month."
    )


class CostsView(ApiView):
    """What the organization's month costs so far, and will have cost at its end.

    Everybody of the organization may see it, and whoever has roles in projects only the part of
    those projects' clusters, in which budgets do not count. An estimate from usage that is some
    minutes old; the invoice counts the rolled-up usage of the whole month.
    """

    in_projects = True
    serializer_class = CostsSerializer
    query_serializers = {"GET": CostsQuerySerializer}
    examples = budget_examples.SHOW_COSTS

    def get(self, request: Request) -> Response:
        """Shows what the month costs so far."""
        current = month_of(now())
        requested = self.query().get("month")
        try:
            month = parse_month(requested) if requested else current
        except ValueError as error:
            raise _month_error(str(error)) from error
        if month > current:
            raise _month_error("This month is yet to come.")
        try:
            clusters = readable_clusters(self.actor)
            return self.answer(estimate_month(self.organization_id, month, clusters))
        except PriceVersion.DoesNotExist as error:
            raise _month_error("This month has no prices.") from error


def _month_error(detail: str) -> ValidationFailed:
    return ValidationFailed(errors=[FieldError("?month", "invalid", detail)])
