"""`freshet export terraform`: writes an organization as a Terraform configuration.

Each item becomes a resource with an import block; the import ids are those of the provider's pages
(`provisioning/deliverables/terraform/docs`). Passwords and API keys are not in it, as the provider
does not manage them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from console.programs.cli import names
from console.programs.cli.client import segment
from console.programs.cli.errors import CommandError
from console.programs.cli.hcl import Names, Resource, Value
from console.programs.cli.options import common_options
from console.programs.cli.session import Session, pass_session

HEAD = """# Made by `freshet export terraform`. It needs FRESHET_ENDPOINT and FRESHET_API_KEY.
# `terraform apply` takes all of it over and changes nothing; then the import blocks can go.
# Passwords are in no configuration: a credential keeps the one it has, until `password_wo` is set.

terraform {
  required_providers {
    freshet = { source = "freshet/freshet" }
  }
}
"""
QUOTA_VALUES = (
    "produce_bytes_per_second",
    "fetch_bytes_per_second",
    "request_percentage",
    "connections",
    "connections_per_second",
)
ACL_KEY = (
    "principal",
    "resource_type",
    "pattern_type",
    "resource_name",
    "operation",
    "permission",
    "host",
)


@dataclass
class Export:
    """Reads items from the API and yields them as resources that refer to each other."""

    session: Session
    _names: Names = field(default_factory=Names)
    # The resources of projects and service accounts by the API's id, for references to them.
    _projects: dict[str, Resource] = field(default_factory=dict)
    _accounts: dict[str, Resource] = field(default_factory=dict)

    def _read_list(self, path: str) -> list[dict[str, Any]]:
        return self.session.client.pages(path)[0]

    def _new_resource(
        self, kind: str, words: list[str], import_id: str, /, **attributes: Value
    ) -> Resource:
        kind = f"freshet_{kind}"
        return Resource(kind, self._names.take(kind, *words), import_id, attributes)

    def organization_resources(self) -> Iterator[Resource]:
        """Yields settings, people, projects, service accounts, role bindings and budgets.

        The default project is left out: every organization has one, and it cannot be deleted.
        """
        yield self._settings_resource()
        yield from self._member_resources()
        for project in self._read_list("/projects"):
            if not project["default"]:
                resource = self._new_resource(
                    "project", [project["name"]], project["id"],
                    name=project["name"], labels=project["labels"] or None,
                )  # fmt: skip
                self._projects[project["id"]] = resource
                yield resource
        for account in self._read_list("/service-accounts"):
            resource = self._new_resource(
                "service_account", [account["name"]], account["id"],
                name=account["name"], description=account["description"] or None,
                role=account["role"],
                disabled=account["disabled"] or None,
            )  # fmt: skip
            self._accounts[account["id"]] = resource
            yield resource
        for binding in self._read_list("/role-bindings"):
            yield self._binding_resource(binding)
        for budget in self._read_list("/budgets"):
            yield self._new_resource(
                "budget", [budget["name"]], budget["id"],
                name=budget["name"], amount_minor=budget["amount_minor"],
                thresholds=budget["thresholds"], action=budget["action"],
                throttle_bytes_per_s=budget["throttle_bytes_per_s"],
            )  # fmt: skip

    def _settings_resource(self) -> Resource:
        settings = self.session.client.get("/organizations/current")
        return self._new_resource(
            "organization_settings",
            [settings["name"]],
            settings["id"],
            name=settings["name"],
            allowed_addresses=settings["allowed_addresses"],
            two_factor_required=settings["two_factor_required"],
        )

    def _member_resources(self) -> Iterator[Resource]:
        """Yields members and pending invitations."""
        invited = [
            invitation
            for invitation in self._read_list("/invitations")
            if invitation["state"] == "pending"
        ]
        for person in [*self._read_list("/members"), *invited]:
            yield self._new_resource(
                "member",
                [person["email"]],
                person["email"],
                email=person["email"],
                role=person["role"],
            )

    def _binding_resource(self, row: dict[str, Any]) -> Resource:
        account = self._accounts.get(row["principal_id"])
        project = self._projects.get(row["project_id"])
        words = [account.name if account else row["principal_id"], row["role"]]
        return self._new_resource(
            "role_binding",
            [*words, *([project.name] if project else [])],
            row["id"],
            principal_type=row["principal_type"],
            principal_id=account.refer("id") if account else row["principal_id"],
            project_id=project.refer("id") if project else row["project_id"],
            role=row["role"],
        )

    def cluster_resources(self, ids: list[str]) -> Iterator[Resource]:
        """Yields clusters with what is in them. `ids`: only these clusters; empty for all."""
        alerts = self._read_list("/alerts")
        for row in self._read_list("/clusters"):
            if row["deleted_at"] is None and (not ids or row["id"] in ids):
                ours = [alert for alert in alerts if alert["cluster_id"] == row["id"]]
                yield from self._cluster_resources(row, ours)

    def _cluster_resources(
        self, row: dict[str, Any], alerts: list[dict[str, Any]]
    ) -> Iterator[Resource]:
        project = self._projects.get(row["project_id"])
        scale = row["spec"]["scale"]
        cluster = self._new_resource(
            "cluster",
            [row["name"]],
            row["id"],
            name=row["name"],
            project_id=project.refer("id") if project else None,
            region=row["region"],
            idle_timeout_s=row["spec"]["idle_timeout_s"],
            deletion_protection=row["deletion_protection"],
            scale={"min": scale["min"], "max": scale["max"]},
            schedules=row["spec"]["schedules"] or None,
            labels=row["labels"] or None,
        )
        yield cluster
        path = f"/clusters/{segment(row['id'])}"
        for topic in self._read_list(f"{path}/topics"):
            yield self._new_resource(
                "topic", [cluster.name, topic["name"]], f"{row['id']}/{topic['name']}",
                cluster_id=cluster.refer("id"), name=topic["name"],
                partitions=topic["partitions"], configs=topic["configs"] or None,
            )  # fmt: skip
        users = {}
        for credential in self._read_list(f"{path}/credentials"):
            if credential["replaced_by"] is None:
                resource = self._credential_resource(cluster, credential)
                users[credential["username"]] = resource
                yield resource
        for acl in self._read_list(f"{path}/acls"):
            yield self._acl_resource(cluster, acl, users)
        for quota in self._read_list(f"{path}/quotas"):
            yield self._quota_resource(cluster, quota, users)
        for alert in alerts:
            yield self._new_resource(
                "alert", [cluster.name, alert["name"]], alert["id"],
                cluster_id=cluster.refer("id"), name=alert["name"], kind=alert["kind"],
                group=alert["group"] or None, threshold=int(alert["threshold"]),
                for_s=alert["for_s"], emails=alert["emails"] or None,
            )  # fmt: skip

    def _credential_resource(self, cluster: Resource, row: dict[str, Any]) -> Resource:
        return self._new_resource(
            "credential",
            [cluster.name, row["name"]],
            f"{cluster.import_id}/{row['id']}",
            cluster_id=cluster.refer("id"),
            name=row["name"],
            role=row["role"],
            mechanism=row["mechanism"],
        )

    def _acl_resource(
        self, cluster: Resource, row: dict[str, Any], users: dict[str, Resource]
    ) -> Resource:
        user = users.get(row["principal"].removeprefix("User:"))
        who = user.name if user else f"{cluster.name}_{row['principal'].removeprefix('User:')}"
        key = [cluster.import_id, *(quote(row[part], safe=":*") for part in ACL_KEY)]
        return self._new_resource(
            "acl",
            [who, row["operation"].lower(), row["resource_type"].lower(), row["resource_name"]],
            "/".join(key),
            cluster_id=cluster.refer("id"),
            principal=user.refer("principal") if user else row["principal"],
            resource_type=row["resource_type"],
            resource_name=row["resource_name"],
            pattern_type=row["pattern_type"],
            operation=row["operation"],
            permission=row["permission"],
            host=row["host"],
        )

    def _quota_resource(
        self, cluster: Resource, row: dict[str, Any], users: dict[str, Resource]
    ) -> Resource:
        entity = {part: row[part] for part in ("user", "client_id", "ip") if row[part] is not None}
        user = users.get(entity.get("user", ""))
        key = [f"{part}={quote(value, safe='')}" for part, value in entity.items()]
        words = [user.name if part == "user" and user else value or f"any_{part}"
                 for part, value in entity.items()]  # fmt: skip
        named: dict[str, Value] = {
            **entity,
            **({"user": user.refer("username")} if user else {}),
            **{name: row[name] for name in QUOTA_VALUES},
        }
        return self._new_resource(
            "client_quota",
            words if user else [cluster.name, *words],
            "/".join([cluster.import_id, *key]),
            cluster_id=cluster.refer("id"),
            **named,
        )


@pass_session
def export_terraform(session: Session, /, cluster: tuple[str, ...], file: str | None) -> None:
    """Write the organization as a Terraform configuration, with blocks that import it.

    The organization's settings and people, projects, service accounts, roles, budgets, clusters
    with their topics, credentials, ACLs, quotas and alerts; with --cluster only those clusters. No
    secret is in it.
    """
    export = Export(session)
    ids = [names.resolve_id(session, names.CLUSTERS, text) for text in cluster]
    resources = [] if ids else list(export.organization_resources())
    resources += export.cluster_resources(ids)
    text = "\n".join([HEAD, *(resource.text() for resource in resources)])
    if file is None or file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
    session.note(f"{len(resources)} resources are in {file}. Next: terraform plan")


def export_commands() -> click.Group:
    """Returns `freshet export`."""
    group = click.Group("export", help="Write the organization's resources for other tools.")
    parameters: list[click.Parameter] = [
        click.Option(
            ["--cluster", "-c"],
            multiple=True,
            metavar="NAME_OR_ID",
            shell_complete=names.completion_of(names.CLUSTERS),
            help="Only this cluster; can be given several times.",
        ),
        click.Option(
            ["--file", "-f"],
            metavar="FILE",
            help="Write it to this file. Default: the standard output.",
        ),
        *common_options(),
    ]
    group.add_command(
        click.Command(
            "terraform", callback=export_terraform, params=parameters, help=export_terraform.__doc__
        )
    )
    return group
