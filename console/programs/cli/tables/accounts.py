"""Commands for the organization, its people, service accounts, API keys and projects."""

from __future__ import annotations

from console.programs.cli.command import CommandRow, Confirm, Shape
from console.programs.cli.fields import Field
from console.programs.cli.tables.shorthand import (
    PROJECT_ROLES,
    ROLES,
    boolean,
    choice,
    cleared,
    expiry,
    flag,
    integer,
    labels,
    listed,
    moment,
    name,
    pairs,
    reference,
    text,
    validate_only,
)

ABOUT = {
    "organization": "The organization that the API key belongs to.",
    "project": "Projects, which hold clusters.",
    "member": "People of the organization.",
    "invitation": "Invitations of people to become members.",
    "service-account": "Accounts of programs.",
    "role-binding": "Roles in projects.",
    "api-key": "Keys of the REST interface, such as this command line's.",
}


def _project_roles(roles: dict[str, str]) -> list[dict[str, str]]:
    return [{"project_id": project_id, "role": role} for project_id, role in roles.items()]


ORGANIZATION = (
    CommandRow("organization describe", "GET /organizations/current", "The organization."),
    CommandRow(
        "organization update",
        "PATCH /organizations/current",
        "Change the organization. What is not given stays.",
        (
            text("name", "Another name."),
            listed(
                "allowed_addresses",
                "A network that keys and people may come from, such as "
                "192.0.2.0/24; they replace all that there are.",
                "allow-from",
            ),
            cleared(
                "allowed_addresses", "Let them come from anywhere.", "allow-from-anywhere", list
            ),
            boolean("two_factor_required", "Whether members need a second factor."),
            flag("force", "Change it although it locks this command line out.", query=True),
        ),
    ),
    CommandRow(
        "organization export",
        "GET /organizations/current/export",
        "Save everything but secrets and records, as a ZIP archive of JSON lines.",
        shape=Shape.FILE,
        file="organization.zip",
    ),
)

PROJECTS = (
    CommandRow(
        "project list",
        "GET /projects",
        "All projects that you may see.",
        shape=Shape.PAGES,
        columns="name id default labels created_at",
    ),
    CommandRow(
        "project create",
        "POST /projects",
        "Make a project.",
        (name(), *labels(), validate_only()),
    ),
    CommandRow("project describe", "GET /projects/{id}", "A project, and what you may do in it."),
    CommandRow(
        "project update",
        "PATCH /projects/{id}",
        "Change a project.",
        (text("name", "Another name."), *labels(), validate_only()),
    ),
    CommandRow(
        "project delete",
        "DELETE /projects/{id}",
        "Delete a project without clusters.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

PEOPLE = (
    CommandRow(
        "member list",
        "GET /members",
        "All members.",
        shape=Shape.PAGES,
        columns="email name role two_factor last_seen_at id user_id",
    ),
    CommandRow("member describe", "GET /members/{id}", "A member, by address or id."),
    CommandRow(
        "member update",
        "PATCH /members/{id}",
        "Give a member another role.",
        (choice("role", "At most your own.", ROLES), validate_only()),
    ),
    CommandRow(
        "member remove",
        "DELETE /members/{id}",
        "Remove somebody from the organization; their sessions in it end.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "invitation list",
        "GET /invitations",
        "Invitations, newest first.",
        shape=Shape.PAGES,
        columns="email role state expires_at invited_by id",
    ),
    CommandRow(
        "invitation create",
        "POST /invitations",
        "Invite somebody. The link in the mail is valid for seven days.",
        (
            Field("email", "The address.", argument=True),
            choice("role", "At most your own. Default: member.", ROLES),
            pairs(
                "project_roles",
                "A role in a project that comes with it: the project's id, and the role.",
                "project-role",
                parse=_project_roles,
            ),
            validate_only(),
        ),
    ),
    CommandRow(
        "invitation resend",
        "POST /invitations/{id}:resend",
        "Send another mail; the link in the former mail ends.",
    ),
    CommandRow(
        "invitation revoke",
        "DELETE /invitations/{id}",
        "Take an invitation back.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

PROGRAMS = (
    CommandRow(
        "service-account list",
        "GET /service-accounts",
        "All service accounts.",
        shape=Shape.PAGES,
        columns="name id role disabled description created_at",
    ),
    CommandRow(
        "service-account create",
        "POST /service-accounts",
        "Make a service account. Then: api-key create NAME --service-account ACCOUNT",
        (
            name(),
            text("description", "What it is for."),
            choice(
                "role", "At most your own. Default: member, which grants nothing by itself.", ROLES
            ),
            validate_only(),
        ),
    ),
    CommandRow("service-account describe", "GET /service-accounts/{id}", "A service account."),
    CommandRow(
        "service-account update",
        "PATCH /service-accounts/{id}",
        "Change a service account. What is not given stays.",
        (
            text("name", "Another name."),
            text("description", "What it is for."),
            choice("role", "At most your own.", ROLES),
            boolean("disabled", "Whether its keys are refused."),
            validate_only(),
        ),
    ),
    CommandRow(
        "service-account delete",
        "DELETE /service-accounts/{id}",
        "Delete a service account with its keys.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
    CommandRow(
        "role-binding list",
        "GET /role-bindings",
        "Who has which role in which project.",
        (
            text(
                "principal_id",
                "Only of this user or service account.",
                query=True,
                option="principal",
            ),
            reference("project_id", "Only in this project.", "/projects", query=True),
        ),
        Shape.PAGES,
        "id principal_type principal_id project_id role created_at",
    ),
    CommandRow(
        "role-binding create",
        "POST /role-bindings",
        "Give a user or a service account a role in a project.",
        (
            choice(
                "principal_type",
                "Whether it is a user or a service account.",
                ("user", "service_account"),
                required=True,
            ),
            text(
                "principal_id",
                "The `user_id` of `member list`, or the service account's id.",
                required=True,
                option="principal",
            ),
            reference("project_id", "The project.", "/projects", required=True),
            choice("role", "Grants at most what you may.", PROJECT_ROLES, required=True),
            validate_only(),
        ),
    ),
    CommandRow("role-binding describe", "GET /role-bindings/{id}", "A role in a project."),
    CommandRow(
        "role-binding delete",
        "DELETE /role-bindings/{id}",
        "Take a role back.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

KEYS = (
    CommandRow(
        "api-key list",
        "GET /api-keys",
        "All keys, also those that ended.",
        (reference("service_account_id", "Only of this one.", "/service-accounts", query=True),),
        Shape.PAGES,
        "name id role service_account_id created_at last_used_at expires_at revoked_at",
    ),
    CommandRow(
        "api-key create",
        "POST /api-keys",
        "Make a key. Its secret is shown only now.",
        (
            name(),
            choice("role", "At most your own. Default: admin.", ROLES),
            reference(
                "service_account_id",
                "The service account whose roles the key has.",
                "/service-accounts",
            ),
            expiry(),
            validate_only(),
        ),
    ),
    CommandRow(
        "api-key rotate",
        "POST /api-keys/{id}:rotate",
        "Make a key with the same rights; the old one ends after a while.",
        (
            integer("overlap_s", "Seconds in which both work. Default: an hour."),
            moment(
                "expires_at",
                "When the new one ends; `never` for never.",
                option="expires",
                nullable=True,
            ),
        ),
    ),
    CommandRow(
        "api-key delete",
        "DELETE /api-keys/{id}",
        "Revoke a key; it stops working within five seconds.",
        shape=Shape.NOTHING,
        confirm=Confirm.YES,
    ),
)

COMMANDS = (*ORGANIZATION, *PROJECTS, *PEOPLE, *PROGRAMS, *KEYS)
