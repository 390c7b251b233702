"""Examples of projects, people and service accounts for the OpenAPI file."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

from console.base.accounts.api.examples import ORGANIZATION

PROJECT = {
    "id": "prj_4xw2m7kq5v3nzjt6ybac",
    "name": "Checkout",
    "labels": {"team": "payments"},
    "default": False,
    "permissions": ["belong", "data.read", "manage", "read", "write"],
    "generation": 1,
    "created_at": "2026-11-21T15:00:00Z",
}
MEMBER = {
    "id": "mem_2qk5v3nz7xw4mjt6ybac",
    "user_id": "usr_k3vq5n7zx2wm4jt6ybac",
    "email": "ada@example.com",
    "name": "Ada Lovelace",
    "role": "developer",
    "two_factor": True,
    "last_seen_at": "2026-11-21T15:40:00Z",
    "created_at": "2026-11-21T15:05:00Z",
}
INVITATION = {
    "id": "ivt_v3nz7xw4mjt6ybac2qk5",
    "email": "ada@example.com",
    "role": "member",
    "project_roles": [{"project_id": PROJECT["id"], "role": "developer"}],
    "state": "pending",
    "invited_by": "usr_7xw4mjt6ybac2qk5v3nz",
    "expires_at": "2026-11-28T15:00:00Z",
    "created_at": "2026-11-21T15:00:00Z",
}
ROLE_BINDING = {
    "id": "rb_mjt6ybac2qk5v3nz7xw4",
    "principal_type": "service_account",
    "principal_id": "sa_5v3nz7xw4mjt6ybac2qk",
    "project_id": PROJECT["id"],
    "role": "developer",
    "created_at": "2026-11-21T15:10:00Z",
}
SERVICE_ACCOUNT = {
    "id": "sa_5v3nz7xw4mjt6ybac2qk",
    "name": "deploy",
    "description": "Applies what is merged.",
    "role": "member",
    "disabled": False,
    "generation": 1,
    "created_at": "2026-11-21T15:08:00Z",
}


def _body(name: str, value: object) -> OpenApiExample:
    return OpenApiExample(name, value=value, request_only=True)


def _answer(name: str, value: object, status: int = 200) -> OpenApiExample:
    return OpenApiExample(name, value=value, response_only=True, status_codes=[str(status)])


PROJECTS = {
    "list": [_answer("Projects", PROJECT)],
    "retrieve": [_answer("A project", PROJECT)],
    "create": [
        _body("A team's", {"name": "Checkout", "labels": {"team": "payments"}}),
        _answer("The new project", PROJECT, 201),
    ],
    "partial_update": [
        _body("Rename", {"name": "Payments"}),
        _answer("Renamed", {**PROJECT, "name": "Payments", "generation": 2}),
    ],
}
MEMBERS = {
    "list": [_answer("Members", MEMBER)],
    "retrieve": [_answer("A member", MEMBER)],
    "partial_update": [
        _body("Make an administrator", {"role": "admin"}),
        _answer("An administrator", {**MEMBER, "role": "admin"}),
    ],
}
INVITATIONS = {
    "list": [_answer("Invitations", INVITATION)],
    "create": [
        _body(
            "Invite somebody who develops in one project",
            {
                "email": "ada@example.com",
                "role": "member",
                "project_roles": [{"project_id": PROJECT["id"], "role": "developer"}],
            },
        ),
        _answer("Invited", INVITATION, 201),
    ],
    "resend": [_answer("Sent anew", INVITATION)],
}
ACCEPT = [
    _body(
        "With a new account",
        {
            "token": "k3vq5n7zx2wm4jt6ybacv3nz7xw4mjt6ybac2qk55v3nz7xw4mjt",
            "password": "a sentence that only Ada knows",
            "name": "Ada Lovelace",
        },
    ),
    _body("Signed in", {"token": "k3vq5n7zx2wm4jt6ybacv3nz7xw4mjt6ybac2qk55v3nz7xw4mjt"}),
    _answer("Joined", {"organization": ORGANIZATION, "member": MEMBER}, 201),
]
ROLE_BINDINGS = {
    "list": [_answer("Roles in projects", ROLE_BINDING)],
    "retrieve": [_answer("A role in a project", ROLE_BINDING)],
    "create": [
        _body(
            "A service account that develops",
            {
                "principal_type": "service_account",
                "principal_id": SERVICE_ACCOUNT["id"],
                "project_id": PROJECT["id"],
                "role": "developer",
            },
        ),
        _answer("It may", ROLE_BINDING, 201),
    ],
}
SERVICE_ACCOUNTS = {
    "list": [_answer("Service accounts", SERVICE_ACCOUNT)],
    "retrieve": [_answer("A service account", SERVICE_ACCOUNT)],
    "create": [
        _body(
            "For deployments",
            {"name": "deploy", "description": "Applies what is merged.", "role": "member"},
        ),
        _answer("The new account", SERVICE_ACCOUNT, 201),
    ],
    "partial_update": [
        _body("Disable", {"disabled": True}),
        _answer("Disabled", {**SERVICE_ACCOUNT, "disabled": True, "generation": 2}),
    ],
}
