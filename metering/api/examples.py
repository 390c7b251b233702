"""Examples for the OpenAPI file, by view and action."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

ITEM: dict[str, Any] = {
    "id": "ur_4x7mzq2nk5vw3jt6ybac",
    "meter": "ingress_bytes",
    "unit": "byte",
    "quantity": "73014444032",
    "window_start": "2026-11-20T00:00:00Z",
    "window_end": "2026-11-21T00:00:00Z",
    "provisional": False,
    "billed": True,
    "cluster_id": "cl_3k2jq7v5xw4mzn6yt2ba",
    "topic_id": "27c61dd6fcf3410d1a9b8988e65e6bd8",
    "topic": "payments",
    "principal": "User:cred_5xw4mzn6yt2ba3k2jq7v",
    "principal_name": "checkout",
}
FRESH: dict[str, Any] = ITEM | {
    "id": None,
    "quantity": "104857600",
    "window_start": "2026-11-21T14:00:00Z",
    "window_end": "2026-11-21T15:00:00Z",
    "provisional": True,
    "topic_id": None,
    "topic": None,
    "principal": None,
    "principal_name": None,
}
ROW: dict[str, Any] = ITEM | {
    "granularity": "day",
    "run": {
        "id": "run_7m4nq2xk5vw3jzt6ybac",
        "day": "2026-11-20",
        "published_at": "2026-11-21T00:30:41Z",
        "content_sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "current": True,
    },
    "files": [
        {
            "key": "v1/cell=local/day=2026-11-20/1795132860000-b94d27b9934d3e08.parquet",
            "sha256": "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
            "size_bytes": 20480,
            "rows": 312,
            "lanes": [
                {
                    "incarnation": 3,
                    "first_sequence": 120,
                    "last_sequence": 164,
                    "files": [{"file": 7, "first_sequence": 120, "last_sequence": 164}],
                    "since": "2026-11-20T00:00:00.482000Z",
                    "until": "2026-11-20T00:01:00.112000Z",
                }
            ],
            "since": None,
            "until": None,
        }
    ],
}


RECONCILED: dict[str, Any] = {
    "id": "rcd_2ba4x7mzq2nk5vw3jt6y",
    "cluster_id": "cl_3k2jq7v5xw4mzn6yt2ba",
    "day": "2026-11-20",
    "agreement": "equal",
    "metered_bytes": "73014444032",
    "logged_bytes": "73014444032",
    "unknown_bytes": "0",
    "differing_partitions": 0,
    "reason": "",
    "compared_at": "2026-11-21T00:31:12Z",
}


STORED: dict[str, Any] = {
    "bytes": "13314398617",
    "at": "2026-11-21T14:57:00Z",
    "clusters": [
        {
            "cluster_id": "cl_3k2jq7v5xw4mzn6yt2ba",
            "bytes": "13314398617",
            "at": "2026-11-21T14:57:00Z",
        }
    ],
}


def _response_example(name: str, value: object) -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=["200"])


USAGE = {"list": [_response_example("A row", ITEM), _response_example("A sum by cluster", FRESH)]}
RECONCILIATIONS = {"list": [_response_example("A day to the byte", RECONCILED)]}
ROWS = {"retrieve": [_response_example("A row and where it comes from", ROW)]}
SHOW_STORED = {"GET": [_response_example("What topics hold now", STORED)]}
