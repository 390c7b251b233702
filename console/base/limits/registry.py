"""Every published limit. What is enforced anywhere is here, with its default in the settings.

A name is also the setting's, in the section `limits`, and the `quota.name` of problems.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX
from console.base.common.conf import config
from console.base.limits.choices import LimitScope


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit as it is published. `effect`: what happens at it, in a sentence.

    `supported_max`: the service can do no more yet, whatever the settings say or was granted;
    `unsupported` tells so to whoever wants more. None: as much as is set or granted.
    """

    name: str
    scope: LimitScope
    unit: str
    effect: str
    raisable: bool = True
    supported_max: int | None = None
    unsupported: str = ""

    @property
    def default(self) -> int:
        """What holds where nothing else was granted."""
        value: int = getattr(config().limits, self.name)
        return self.supported(value)

    def supported(self, value: int) -> int:
        """The value, or what the service can do where that is less."""
        return value if self.supported_max is None else min(value, self.supported_max)


ORGANIZATION, CLUSTER, ADDRESS = LimitScope.ORGANIZATION, LimitScope.CLUSTER, LimitScope.ADDRESS
FULL = "Creating another one is refused (403, limit_reached)."
LIMITS: tuple[Limit, ...] = (
    Limit(
        "api_requests_per_second",
        ORGANIZATION,
        "requests/s",
        "Counted over ten seconds; more are refused (429, rate_limited) and Retry-After says when "
        "to come back.",
    ),
    Limit("api_keys", ORGANIZATION, "keys", FULL),
    Limit("projects", ORGANIZATION, "projects", FULL),
    Limit(
        "members", ORGANIZATION, "people", "Inviting somebody else is refused (403, limit_reached)."
    ),
    Limit(
        "invitations_per_day",
        ORGANIZATION,
        "invitations",
        "Inviting somebody else is refused (403, limit_reached) until 24 hours have passed.",
    ),
    Limit("service_accounts", ORGANIZATION, "accounts", FULL),
    Limit("role_bindings", ORGANIZATION, "roles", FULL),
    Limit("clusters", ORGANIZATION, "clusters", FULL),
    Limit("budgets", ORGANIZATION, "budgets", FULL),
    Limit("alerts", ORGANIZATION, "alerts", FULL),
    Limit(
        "live_tails",
        ORGANIZATION,
        "streams",
        "Opening another live tail in the same web process is refused (429, too_many_streams).",
    ),
    Limit(
        "brokers",
        CLUSTER,
        "brokers",
        "A larger scale is refused (403, limit_reached): several brokers per cluster are not "
        "supported yet.",
        raisable=False,
        supported_max=BROKERS_PER_CLUSTER_MAX,
        unsupported="Several brokers per cluster are not supported yet: a cluster has one broker.",
    ),
    Limit("credentials", CLUSTER, "credentials", FULL),
    Limit("acls", CLUSTER, "entries", FULL),
    Limit("topics", CLUSTER, "topics", FULL),
    Limit("partitions", CLUSTER, "partitions", FULL),
    Limit(
        "quotas", CLUSTER, "quotas", "Quotas of another entity are refused (403, limit_reached)."
    ),
    Limit(
        "connections",
        CLUSTER,
        "connections",
        "The gateway closes further connections of Kafka clients at once.",
    ),
    Limit(
        "wakes_per_minute",
        CLUSTER,
        "wakes/min",
        "A client that connects to the sleeping cluster waits until the minute is over.",
    ),
    Limit(
        "anonymous_requests_per_second",
        ADDRESS,
        "requests/s",
        "Requests without a valid credential, counted over ten seconds; more are refused (429, "
        "rate_limited).",
        raisable=False,
    ),
    Limit(
        "signups_per_address",
        ADDRESS,
        "sign-ups/h",
        "Further sign-ups are refused (429, too_many_requests) until an hour has passed.",
        raisable=False,
    ),
    Limit(
        "password_resets_per_address",
        ADDRESS,
        "mails/h",
        "Further mails to set a new password are refused (429, too_many_requests) until an hour "
        "has passed.",
        raisable=False,
    ),
    Limit(
        "signins_failed_per_address",
        ADDRESS,
        "sign-ins/h",
        "Further sign-ins are refused (429, too_many_requests) until an hour has passed.",
        raisable=False,
    ),
)
BY_NAME = {limit.name: limit for limit in LIMITS}
