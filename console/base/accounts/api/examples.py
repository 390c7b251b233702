"""Examples of requests and answers for the OpenAPI file."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

ORGANIZATION = {
    "id": "org_7mwl5zc2kq3xv4ahdn6t",
    "name": "Acme",
    "standing": "active",
    "verified": False,
    "produce_suspended_reason": None,
    "traffic_limit": None,
    "allowed_addresses": ["192.0.2.0/24", "2001:db8:17::/48"],
    "two_factor_required": True,
    "closed_at": None,
    "generation": 1,
    "created_at": "2026-03-01T09:30:00Z",
}
API_KEY = {
    "id": "key_e4t7ncz5qx2mlk3vw6yd",
    "name": "First key",
    "role": "owner",
    "service_account_id": None,
    "created_at": "2026-03-01T09:30:00Z",
    "expires_at": None,
    "secret": "fk_e4t7ncz5qx2mlk3vw6yd_kq3zv5n7x2mwl4ahdtc6yb3e7fgu5ijo",
}

SIGN_UP = [
    OpenApiExample(
        "Sign up",
        request_only=True,
        value={
            "email": "ada@example.com",
            "password": "a sentence that only Ada knows",
            "organization_name": "Acme",
        },
    ),
    OpenApiExample(
        "Signed up",
        response_only=True,
        status_codes=["201"],
        value={"organization": ORGANIZATION, "api_key": API_KEY},
    ),
]
CREATE_API_KEY = [
    OpenApiExample(
        "A key for deployments",
        request_only=True,
        value={"name": "deploy", "role": "developer", "expires_at": "2027-03-01T00:00:00Z"},
    ),
    OpenApiExample(
        "The new key",
        response_only=True,
        status_codes=["201"],
        value={**API_KEY, "name": "deploy", "role": "developer"},
    ),
]
ROTATE_API_KEY = [
    OpenApiExample("Within an hour", request_only=True, value={"overlap_s": 3600}),
    OpenApiExample(
        "The new key",
        response_only=True,
        status_codes=["201"],
        value={**API_KEY, "name": "deploy", "role": "developer"},
    ),
]
API_KEYS = [
    OpenApiExample(
        "One",
        response_only=True,
        value={
            **{name: value for name, value in API_KEY.items() if name != "secret"},
            "last_used_at": "2026-11-21T14:02:00Z",
            "revoked_at": None,
        },
    ),
]
USER = {
    "id": "usr_7mwl5zc2kq3xv4ahdn6t",
    "email": "ada@example.com",
    "name": "Ada",
    "email_verified": True,
    "two_factor": False,
    "is_staff": False,
}
VERIFY = [
    OpenApiExample(
        "The mail's token",
        request_only=True,
        value={"token": "usr_7mwl5zc2kq3xv4ahdn6t:1wJx2k:Qm0c3ZlcmlmaWVk"},
    ),
    OpenApiExample("Verified", response_only=True, status_codes=["200"], value=USER),
]
VERIFICATION = [
    OpenApiExample("Send it anew", request_only=True, value={"email": "ada@example.com"}),
]
_MEMBERSHIP = {
    **{name: value for name, value in ORGANIZATION.items() if name != "allowed_addresses"},
    "role": "owner",
}
SESSION = OpenApiExample(
    "Signed in",
    response_only=True,
    status_codes=["200"],
    value={
        "user": USER,
        "organizations": [_MEMBERSHIP],
        "organization": _MEMBERSHIP,
        "csrf_token": "kq3zv5n7x2mwl4ahdtc6yb3e7fgu5ijokq3zv5n7x2mwl4ahdtc6yb3e7fgu5ijo",
    },
)
SWITCH = [
    OpenApiExample("To Acme", request_only=True, value={"organization_id": ORGANIZATION["id"]}),
    SESSION,
]
SIGN_IN = [
    OpenApiExample(
        "Sign in",
        request_only=True,
        value={"email": "ada@example.com", "password": "a sentence that only Ada knows"},
    ),
    SESSION,
]
ORGANIZATION_UPDATE = [
    OpenApiExample("Rename", request_only=True, value={"name": "Acme"}),
    OpenApiExample("Changed", response_only=True, status_codes=["200"], value=ORGANIZATION),
]
ORGANIZATION_CURRENT = [
    OpenApiExample("Acme", response_only=True, status_codes=["200"], value=ORGANIZATION),
]
