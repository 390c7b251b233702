"""Examples for the OpenAPI file, by view and action."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

CLUSTER_ID = "cl_3k2jq7v5xw4mzn6yt2ba"
OPERATION_ID = "op_7m4nq2xk5vw3jzt6ybac"


def body(name: str, value: object) -> OpenApiExample:
    """An example of a request's body."""
    return OpenApiExample(name, value=value, request_only=True)


def answer(name: str, value: object, status: int = 200) -> OpenApiExample:
    """An example of an answer."""
    return OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])


OPERATION: dict[str, Any] = {
    "id": OPERATION_ID,
    "type": "create_cluster",
    "resource_id": CLUSTER_ID,
    "state": "running",
    "progress": 50,
    "error": None,
    "request_id": "req_5v2jq7k3xw4mzn6yt2ba",
    "created_at": "2026-11-21T15:00:00Z",
    "finished_at": None,
}
OFFICE_HOURS: dict[str, Any] = {
    "days": ["mon", "tue", "wed", "thu", "fri"],
    "start": "07:00",
    "end": "19:00",
    "time_zone": "Europe/Zurich",
}
CLUSTER: dict[str, Any] = {
    "id": CLUSTER_ID,
    "name": "orders",
    "project_id": "prj_4xw2m7kq5v3nzjt6ybac",
    "region": "local",
    "labels": {"team": "checkout"},
    "generation": 1,
    "created_at": "2026-11-21T15:00:00Z",
    "deletion_protection": True,
    "deleted_at": None,
    "spec": {
        "idle_timeout_s": 300,
        "scale": {"min": 0, "max": 3},
        "schedules": [OFFICE_HOURS],
    },
    "schedule": {"awake": True, "until": "2026-11-23T18:00:00Z"},
    "bootstrap_servers": "127.0.0.1:9092",
    "endpoints": [
        {"listener": "SASL_PLAINTEXT", "bootstrap_servers": "127.0.0.1:9092"},
        {
            "listener": "SASL_SSL",
            "bootstrap_servers": "orders-k3v7q2xm.kafka.localhost:9443",
        },
    ],
    "status": {
        "phase": "running",
        "since": "2026-11-21T15:00:01Z",
        "observed_generation": 1,
        "conditions": [
            {
                "type": "Ready",
                "status": "true",
                "reason": "Running",
                "message": "Its brokers serve.",
            }
        ],
        "connections": 2,
        "restarts": 0,
        "brokers": [{"slot": slot, "phase": "serving"} for slot in range(3)],
    },
}
TOPIC: dict[str, Any] = {
    "name": "payments",
    "id": "J8Yd1vPzQ0a0m4mI5l5r2g",
    "partitions": 6,
    "replication_factor": 1,
    "internal": False,
    "created_at": "2026-11-21T15:02:00Z",
    "configs": {"retention.ms": "604800000"},
    "config_details": None,
    "status": {
        "partitions_led": 6,
        "conditions": [
            {"type": "Ready", "status": "true", "reason": "Led", "message": "Brokers serve it."}
        ],
    },
}
ACL: dict[str, Any] = {
    "id": "acl_xw4mzn6yt2ba3k2jq7v5",
    "principal": "User:cred_5xw4mzn6yt2ba3k2jq7v",
    "resource_type": "TOPIC",
    "resource_name": "payments",
    "pattern_type": "LITERAL",
    "operation": "READ",
    "permission": "ALLOW",
    "host": "*",
}
CREDENTIAL: dict[str, Any] = {
    "id": "cred_5xw4mzn6yt2ba3k2jq7v",
    "name": "checkout",
    "username": "cred_5xw4mzn6yt2ba3k2jq7v",
    "principal": "User:cred_5xw4mzn6yt2ba3k2jq7v",
    "role": "producer",
    "mechanism": "SCRAM-SHA-512",
    "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"],
    "generation": 1,
    "created_at": "2026-11-21T15:03:00Z",
    "expires_at": None,
    "last_used_at": "2026-11-21T15:07:00Z",
    "replaces": None,
    "replaced_by": None,
}
EFFECT = {
    "conditions": [
        {
            "type": "Ready",
            "status": "true",
            "reason": "Effective",
            "message": "The brokers have it.",
        }
    ]
}
GROUP: dict[str, Any] = {
    "group": "billing",
    "state": "Stable",
    "type": "classic",
    "protocol_type": "consumer",
    "protocol": "range",
    "members": [
        {
            "member_id": "billing-1-0b7f",
            "client_id": "billing-1",
            "host": "127.0.0.1",
            "instance_id": None,
            "assignments": [{"topic": "payments", "partition": 0}],
            "truncated": False,
        }
    ],
    "partitions": [
        {
            "topic": "payments",
            "partition": 0,
            "committed": "90",
            "end": "100",
            "lag": "10",
            "lag_seconds": 2.5,
        }
    ],
    "lag": "10",
    "lag_seconds": 2.5,
    "sampled_at": None,
}
SHOWN_BYTES = {"base64": "eyJpZCI6MX0=", "text": '{"id":1}', "size": 8, "truncated": False}
MESSAGE: dict[str, Any] = {
    "partition": 0,
    "offset": "41",
    "timestamp_ms": "1795273200000",
    "timestamp_type": "CreateTime",
    "key": None,
    "value": SHOWN_BYTES,
    "headers": [],
    "size": 8,
}

_ACCEPTED = answer("Accepted", OPERATION, 202)
CLUSTERS = {
    "list": [answer("One", CLUSTER)],
    "retrieve": [answer("Running", CLUSTER)],
    "create": [
        body("Smallest", {"name": "orders", "region": "local"}),
        body("With labels", {"name": "orders", "labels": {"team": "checkout"}}),
        body("Of three brokers", {"name": "orders", "spec": {"scale": {"max": 3}}}),
        _ACCEPTED,
    ],
    "partial_update": [
        body("Idle time", {"idle_timeout_s": 600}),
        body("Never to sleep", {"spec": {"scale": {"min": 1}}}),
        body("With five brokers", {"spec": {"scale": {"max": 5}}}),
        body("Awake in office hours", {"spec": {"schedules": [OFFICE_HOURS]}}),
        answer("Changed", CLUSTER),
    ],
    "destroy": [body("Confirmed by its name", {"name": "orders"}), _ACCEPTED],
    "undelete": [body("Under another name", {"name": "orders-2"}), _ACCEPTED],
    "wake": [_ACCEPTED],
    "sleep": [_ACCEPTED],
    "suspend": [_ACCEPTED],
    "resume": [_ACCEPTED],
}
REGIONS = {"GET": [answer("One", {"id": "local", "name": "local"})]}
OPERATIONS = {
    "list": [answer("One", OPERATION)],
    "retrieve": [
        answer("Running", OPERATION),
        answer(
            "Failed",
            OPERATION
            | {
                "state": "failed",
                "error": {
                    "code": "start_timed_out",
                    "detail": "Its brokers did not serve within 60 s.",
                },
            },
        ),
    ],
}
TOPICS = {
    "list": [answer("One", TOPIC)],
    "create": [
        body(
            "One", {"name": "payments", "partitions": 6, "configs": {"retention.ms": "604800000"}}
        ),
        body("Several", {"items": [{"name": "a"}, {"name": "b", "partitions": 3}]}),
        answer("Created", TOPIC, 201),
    ],
    "retrieve": [answer("Topic", TOPIC)],
    "partial_update": [
        body(
            "Set one, unset another",
            {"configs": {"retention.ms": "3600000", "max.message.bytes": None}},
        ),
        answer("Changed", TOPIC),
    ],
    "list_partitions": [
        answer(
            "One", {"partition": 0, "leader": 0, "leader_epoch": 3, "damaged_first_offset": None}
        )
    ],
    "delete_records": [
        body("All of one partition", {"partitions": [{"partition": 0, "before_offset": "-1"}]}),
        answer(
            "Deleted", {"items": [{"partition": 0, "low_watermark": "42", "deleted_offsets": "40"}]}
        ),
    ],
    "skip_damaged": [
        body("What would go", {"partition": 0, "first_offset": "94"}),
        body("Delete", {"partition": 0, "first_offset": "94", "confirm": True}),
        answer(
            "What would go",
            {
                "partition": 0,
                "first_offset": "94",
                "next_offset": "96",
                "reason": "undecodable",
                "log_start": "40",
                "records_before": "54",
                "skipped": False,
            },
        ),
    ],
    "add_partitions": [body("Twelve", {"count": 12}), answer("Changed", TOPIC)],
}
DELETED_TOPIC = {
    "id": TOPIC["id"],
    "name": "payments",
    "partitions": 6,
    "deleted_at": "2026-11-21T16:00:00Z",
    "restorable_until": "2026-11-28T16:00:00Z",
}
DELETED_TOPICS = {
    "list": [answer("One", DELETED_TOPIC)],
    "retrieve": [answer("Topic", DELETED_TOPIC)],
    "undelete": [body("Under another name", {"name": "payments-old"}), answer("Back", TOPIC)],
}
ORPHANED_TOPICS = {
    "list": [
        answer(
            "One",
            {
                "id": TOPIC["id"],
                "name": "payments",
                "partitions": 6,
                "found_at": "2026-11-21T16:00:00Z",
            },
        )
    ],
    "attach": [body("Under its name", {}), answer("Attached", TOPIC)],
}
QUOTA: dict[str, Any] = {
    "id": "qta_w4mzn6yt2ba3k2jq7v5x",
    "user": CREDENTIAL["username"],
    "client_id": None,
    "ip": None,
    "produce_bytes_per_second": 1048576.0,
    "fetch_bytes_per_second": 2097152.0,
    "request_percentage": None,
    "connections": 10,
    "connections_per_second": None,
}
QUOTAS = {
    "list": [answer("One", QUOTA)],
    "retrieve": [answer("Quota", QUOTA)],
    "update": [
        body(
            "Of a credential",
            {
                "user": CREDENTIAL["username"],
                "produce_bytes_per_second": 1048576,
                "fetch_bytes_per_second": 2097152,
                "connections": 10,
            },
        ),
        body("Of every address", {"ip": "", "connections_per_second": 5}),
        answer("Set", QUOTA),
    ],
}
NEW_ACL = {name: value for name, value in ACL.items() if name != "id"}
_ADDED = answer("Added", {"items": [ACL | {"status": EFFECT}], "next_cursor": None}, 201)
ACLS = {
    "list": [answer("One", ACL)],
    "create": [
        body("One", {name: NEW_ACL[name] for name in NEW_ACL if name != "host"}),
        body("Several", {"items": [NEW_ACL, NEW_ACL | {"resource_type": "GROUP"}]}),
        answer("Created", ACL | {"status": EFFECT}, 201),
    ],
    "retrieve": [answer("Entry", ACL)],
    "create_batch": [
        body("Two", {"items": [NEW_ACL, NEW_ACL | {"operation": "DESCRIBE"}]}),
        _ADDED,
    ],
    "apply_template": [
        body(
            "A consumer",
            {
                "template": "consumer",
                "principal": ACL["principal"],
                "topic": "payments",
                "group": "billing",
            },
        ),
        _ADDED,
    ],
    "destroy_matching": [
        body("Of a user", {"principal": ACL["principal"]}),
        answer("Removed", {"items": [ACL]}),
    ],
}
ACL_TEMPLATES = {
    "GET": [
        answer(
            "One",
            {
                "template": "consumer",
                "description": "Reads topics as a member of a group.",
                "needs": ["group"],
                "takes": [],
                "entries": [
                    {
                        "resource_type": "GROUP",
                        "resource_name": "group",
                        "pattern_type": "LITERAL",
                        "operation": "READ",
                    }
                ],
            },
        )
    ]
}
_NEW_CREDENTIAL = {
    name: value
    for name, value in (CREDENTIAL | {"password": "shown-this-once", "status": EFFECT}).items()
    if name != "replaced_by"
}
CREDENTIALS = {
    "list": [answer("One", CREDENTIAL)],
    "retrieve": [answer("Credential", CREDENTIAL)],
    "create": [
        body("Producer", {"name": "checkout", "role": "producer"}),
        body(
            "With a password of your own",
            {"name": "checkout", "role": "none", "password": "taken-from-a-vault-of-yours"},
        ),
        answer("Created", _NEW_CREDENTIAL, 201),
    ],
    "partial_update": [
        body("Until the end of the year", {"expires_at": "2026-12-31T23:59:59Z"}),
        answer("Changed", CREDENTIAL | {"generation": 2, "expires_at": "2026-12-31T23:59:59Z"}),
    ],
    "rotate": [
        body("Both for an hour", {"overlap_s": 3600}),
        answer("Rotated", _NEW_CREDENTIAL | {"replaces": "cred_t2ba3k2jq7v5xw4mzn6y"}, 201),
    ],
}
GROUPS = {
    "list": [answer("One", GROUP)],
    "retrieve": [answer("Group", GROUP)],
    "reset_offsets": [
        body(
            "An hour ago, to look at",
            {"to": "timestamp", "timestamp": "2026-11-21T14:00:00Z", "dry_run": True},
        ),
        body("Back by ten", {"to": "shift", "shift": "-10", "topics": [{"topic": "payments"}]}),
        body("Where another group stands", {"to": {"group": "billing-old"}}),
        answer(
            "Plan",
            {
                "dry_run": True,
                "items": [
                    {
                        "topic": "payments",
                        "partition": 0,
                        "current": "90",
                        "target": "80",
                        "lag_after": "20",
                    }
                ],
            },
        ),
    ],
}
FIRST_STEPS = {
    "retrieve": [
        answer("A consumer is missing", {"credential": True, "produced": True, "consumed": False})
    ]
}
UNBILLED_TRAFFIC = {
    "retrieve": [
        answer(
            "A few clients",
            {
                "bytes": "1835008",
                "principals": [
                    {"principal": "User:cred_3n7hq2xw5m4kzt6yb2av", "bytes": "1572864"},
                    {"principal": "User:cred_6yt2ba3k2jq7v5xw4mzn", "bytes": "262144"},
                ],
            },
        )
    ]
}
STREAM = {"list": [answer("A record", MESSAGE)]}
MESSAGES = {
    "list": [
        answer(
            "Page",
            {
                "items": [MESSAGE],
                "next_cursor": None,
                "stopped": "end",
                "scanned": {
                    "records": 42,
                    "bytes": 336,
                    "partitions": [{"partition": 0, "position": "0", "begin": "0", "end": "42"}],
                },
                "damaged": [
                    {
                        "partition": 0,
                        "first_offset": "12",
                        "next_offset": "14",
                        "reason": "undecodable",
                    }
                ],
            },
        )
    ],
    "create": [
        body("Text", {"key": "order-1", "value": '{"id":1}'}),
        body("Bytes", {"value": {"base64": "AAEC"}, "headers": [{"key": "h", "value": "1"}]}),
        answer("Produced", {"partition": 0, "offset": "42", "timestamp_ms": "1795273200000"}, 201),
    ],
}
