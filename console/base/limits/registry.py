"""Every published limit. A limit that any package enforces is listed here.

A limit's name is also the name of its default's setting in the section `limits`, and the
`quota.name` of problems.
"""

from __future__ import annotations

from dataclasses import dataclass

from brokers.metadata_records import BROKERS_PER_CLUSTER_MAX
from console.base.common.conf import config
from console.base.limits.choices import LimitScope


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit as it is published. `effect` is a sentence on what happens when it is reached.

    `supported_max` is the most that the service supports, whatever is set or granted; None for no
    such bound. `unsupported` is the error text for somebody who asks for more than that.
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
        """The value that applies if no other was granted."""
        value: int = getattr(config().limits, self.name)
        return self.supported(value)

    def supported(self, value: int) -> int:
        """Returns the value, or the most that the service supports if that is less."""
        return value if self.supported_max is None else min(value, self.supported_max)


ORGANIZATION, CLUSTER, ADDRESS = LimitScope.ORGANIZATION, LimitScope.CLUSTER, LimitScope.ADDRESS
FULL = "Creating another one is refused (403, limit_reached)."
CLIENTS = "Kafka clients get POLICY_VIOLATION."
DELETED = "As many deleted ones can be restored: the first ones go for later ones."
KEPT = "They leave the last 2 % (at least 10, at most a tenth) to the console, REST and Terraform."
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
        "Mails that invite, repeated ones too, are refused (403, limit_reached) for 24 hours.",
    ),
    Limit("service_accounts", ORGANIZATION, "accounts", FULL),
    Limit("role_bindings", ORGANIZATION, "roles", FULL),
    Limit("clusters", ORGANIZATION, "clusters", FULL),
    Limit(
        "deleted_clusters",
        ORGANIZATION,
        "clusters",
        "Clusters that were deleted and can be restored for seven days. With as many, creating a "
        "cluster is refused (403, limit_reached).",
    ),
    Limit("budgets", ORGANIZATION, "budgets", FULL),
    Limit("alerts", ORGANIZATION, "alerts", FULL),
    Limit(
        "downloads",
        ORGANIZATION,
        "downloads",
        "Another export of the audit log or archive of the organization is refused (429, "
        "too_many_at_once) until one of them has been sent.",
    ),
    Limit(
        "live_tails",
        ORGANIZATION,
        "streams",
        "Opening another live tail is refused (429, too_many_streams).",
    ),
    Limit(
        "watches",
        ORGANIZATION,
        "pages",
        "Another visible page of the console asks for its figures by itself, every few seconds.",
    ),
    Limit(
        "waiting_requests",
        ORGANIZATION,
        "requests",
        "Another request that waits for a cluster's brokers or metadata, or for an operation "
        "(`wait`), is refused (429, too_many_at_once) until one of them is answered.",
    ),
    Limit(
        "brokers",
        CLUSTER,
        "brokers",
        "A larger scale is refused (403, limit_reached).",
        raisable=False,
        supported_max=BROKERS_PER_CLUSTER_MAX,
        unsupported=f"A cluster has at most {BROKERS_PER_CLUSTER_MAX} brokers.",
    ),
    Limit("credentials", CLUSTER, "credentials", f"{FULL} {CLIENTS} {KEPT}"),
    Limit("acls", CLUSTER, "entries", f"{FULL} {CLIENTS} {KEPT}"),
    Limit("topics", CLUSTER, "topics", f"{FULL} {CLIENTS} {DELETED}"),
    Limit("partitions", CLUSTER, "partitions", f"{FULL} {CLIENTS} {DELETED}"),
    Limit(
        "deleted_topics",
        CLUSTER,
        "topics",
        "Topics that were deleted, cannot be restored any more, and are kept in mind for 40 days "
        "because usage of them may be billed late. With as many, creating a topic is refused "
        f"(403, limit_reached). {CLIENTS}",
    ),
    Limit(
        "quotas",
        CLUSTER,
        "quotas",
        f"Quotas of another entity are refused (403, limit_reached). {CLIENTS} {KEPT}",
    ),
    Limit(
        "groups",
        CLUSTER,
        "groups",
        "A consumer that would be in another group is refused (GROUP_MAX_SIZE_REACHED), and so are "
        "its offsets (POLICY_VIOLATION).",
    ),
    Limit(
        "group_members",
        CLUSTER,
        "members",
        "Another member of the same group is refused (GROUP_MAX_SIZE_REACHED).",
    ),
    Limit(
        "group_bytes",
        CLUSTER,
        "bytes",
        "What all groups of a cluster take of memory, with their members' metadata and assignments "
        "and their offsets. A member, an assignment or an offset by which they would take more is "
        "refused (POLICY_VIOLATION). What is there already may be renewed and deleted.",
    ),
    Limit(
        "unbilled_bytes_per_second",
        CLUSTER,
        "bytes/s",
        "Bytes of Kafka requests and answers that are not billed: all but batches of records "
        "that are stored, and records that are handed out as a whole. Refused batches and "
        "duplicates count, and what a topic with `compression.type` compresses to less than half. "
        "Up to 64 seconds of them are saved for later. Beyond that, principals that take more than "
        "their equal share are answered with `throttle_time_ms`, and their connections are not "
        "read for so long: the longer, the more an answer took and the more is owed.",
    ),
    Limit(
        "changes_per_second",
        CLUSTER,
        "changes/s",
        "Topics, configs, ACLs, users, quotas, groups and records that Kafka clients create, "
        "change or delete. Up to 200 seconds of them are saved for later. Beyond that clients get "
        "THROTTLING_QUOTA_EXCEEDED and the time to wait; so they do while 5,000 changes wait for "
        "the audit log, which gets each. The console, REST and Terraform are not counted.",
    ),
    Limit(
        "usage_pairs_per_minute",
        CLUSTER,
        "pairs/min",
        "Pairs of a topic and a credential that write, and as many that read, have usage and costs "
        "of their own. Bytes of further pairs of the same minute are counted together for each "
        "topic, under `Others:*`, and billed alike.",
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
        "page_requests_per_second",
        ADDRESS,
        "requests/s",
        "Requests to a web process for pages and files of the console and for its health, beyond "
        "three seconds' worth at once: more wait up to two seconds, or are refused (429, "
        "rate_limited). It serves two of them and of those without a valid credential at a time.",
        raisable=False,
    ),
    Limit(
        "web_connections_per_address",
        ADDRESS,
        "connections",
        "A web process closes further connections at once. It also closes those whose request's "
        "head is not complete in ten seconds, and reads 500 times a second from all of them.",
        raisable=False,
    ),
    Limit(
        "waiting_requests_per_address",
        ADDRESS,
        "requests",
        "As `waiting_requests`, for requests of all organizations.",
        raisable=False,
    ),
    Limit(
        "watches_per_address",
        ADDRESS,
        "pages",
        "As `watches`, for pages of all organizations.",
        raisable=False,
    ),
    Limit(
        "password_checks_per_address",
        ADDRESS,
        "passwords",
        "Signing in, signing up or changing a password is refused (429, too_many_at_once) until "
        "one of them is answered.",
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
