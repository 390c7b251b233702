"""`export terraform`: what there is, as a configuration that takes it over.

Each thing is a resource with an import block, by the ids of the provider's pages
(`provisioning/deliverables/terraform/docs`). What the provider does not manage is not in it:
passwords, API keys.
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
from console.programs.cli.options import common
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
    """What is read from the API, as resources that refer to each other."""

    session: Session
    _names: Names = field(default_factory=Names)
    # By id.
    _projects: dict[str, Resource] = field(default_factory=dict)
    _accounts: dict[str, Resource] = field(default_factory=dict)

    def _list(self, path: str) -> list[dict[str, Any]]:
        return self.session.client.pages(path)[0]

    def _new(self, kind: str, words: list[str], import_id: str, /, **attributes: Value) -> Resource:
        kind = f"freshet_{kind}"
        return Resource(kind, self._names.take(kind, *words), import_id, attributes)

    def organization(self) -> Iterator[Resource]:
        """Settings, people, projects, service accounts, roles, budgets. The default project is not
        in it: it cannot be deleted, and every organisation has one."""
        yield self._settings()
        yield from self._people()
        for each in self._list("/projects"):
            if not each["default"]:
                made = self._new(
                    "project", [each["name"]], each["id"],
                    name=each["name"], labels=each["labels"] or None,
                )  # fmt: skip
                self._projects[each["id"]] = made
                yield made
        for each in self._list("/service-accounts"):
            made = self._new(
                "service_account", [each["name"]], each["id"],
                name=each["name"], description=each["description"] or None, role=each["role"],
                disabled=each["disabled"] or None,
            )  # fmt: skip
            self._accounts[each["id"]] = made
            yield made
        for each in self._list("/role-bindings"):
            yield self._role_binding(each)
        for each in self._list("/budgets"):
            yield self._new(
                "budget", [each["name"]], each["id"],
                name=each["name"], amount_minor=each["amount_minor"],
                thresholds=each["thresholds"], action=each["action"],
            )  # fmt: skip

    def _settings(self) -> Resource:
        each = self.session.client.get("/organizations/current")
        return self._new(
            "organization_settings",
            [each["name"]],
            each["id"],
            name=each["name"],
            allowed_addresses=each["allowed_addresses"],
            two_factor_required=each["two_factor_required"],
        )

    def _people(self) -> Iterator[Resource]:
        """Members, and who may still accept an invitation."""
        invited = [each for each in self._list("/invitations") if each["state"] == "pending"]
        for each in [*self._list("/members"), *invited]:
            yield self._new(
                "member", [each["email"]], each["email"], email=each["email"], role=each["role"]
            )

    def _role_binding(self, each: dict[str, Any]) -> Resource:
        account = self._accounts.get(each["principal_id"])
        project = self._projects.get(each["project_id"])
        words = [account.name if account else each["principal_id"], each["role"]]
        return self._new(
            "role_binding",
            [*words, *([project.name] if project else [])],
            each["id"],
            principal_type=each["principal_type"],
            principal_id=account.refer("id") if account else each["principal_id"],
            project_id=project.refer("id") if project else each["project_id"],
            role=each["role"],
        )

    def clusters(self, wanted: list[str]) -> Iterator[Resource]:
        """Clusters (all, or those with these ids) with what is in them."""
        alerts = self._list("/alerts")
        for each in self._list("/clusters"):
            if each["deleted_at"] is None and (not wanted or each["id"] in wanted):
                ours = [alert for alert in alerts if alert["cluster_id"] == each["id"]]
                yield from self._cluster(each, ours)

    def _cluster(self, each: dict[str, Any], alerts: list[dict[str, Any]]) -> Iterator[Resource]:
        project = self._projects.get(each["project_id"])
        scale = each["spec"]["scale"]
        cluster = self._new(
            "cluster",
            [each["name"]],
            each["id"],
            name=each["name"],
            project_id=project.refer("id") if project else None,
            region=each["region"],
            idle_timeout_s=each["spec"]["idle_timeout_s"],
            deletion_protection=each["deletion_protection"],
            scale={"min": scale["min"], "max": scale["max"]},
            schedules=each["spec"]["schedules"] or None,
            labels=each["labels"] or None,
        )
        yield cluster
        path = f"/clusters/{segment(each['id'])}"
        for topic in self._list(f"{path}/topics"):
            yield self._new(
                "topic", [cluster.name, topic["name"]], f"{each['id']}/{topic['name']}",
                cluster_id=cluster.refer("id"), name=topic["name"],
                partitions=topic["partitions"], configs=topic["configs"] or None,
            )  # fmt: skip
        users = {}
        for credential in self._list(f"{path}/credentials"):
            if credential["replaced_by"] is None:
                made = self._credential(cluster, credential)
                users[credential["username"]] = made
                yield made
        for acl in self._list(f"{path}/acls"):
            yield self._acl(cluster, acl, users)
        for quota in self._list(f"{path}/quotas"):
            yield self._quota(cluster, quota, users)
        for alert in alerts:
            yield self._new(
                "alert", [cluster.name, alert["name"]], alert["id"],
                cluster_id=cluster.refer("id"), name=alert["name"], kind=alert["kind"],
                group=alert["group"] or None, threshold=alert["threshold"], for_s=alert["for_s"],
                emails=alert["emails"] or None,
            )  # fmt: skip

    def _credential(self, cluster: Resource, each: dict[str, Any]) -> Resource:
        return self._new(
            "credential",
            [cluster.name, each["name"]],
            f"{cluster.import_id}/{each['id']}",
            cluster_id=cluster.refer("id"),
            name=each["name"],
            role=each["role"],
            mechanism=each["mechanism"],
        )

    def _acl(self, cluster: Resource, each: dict[str, Any], users: dict[str, Resource]) -> Resource:
        user = users.get(each["principal"].removeprefix("User:"))
        who = user.name if user else f"{cluster.name}_{each['principal'].removeprefix('User:')}"
        key = [cluster.import_id, *(quote(each[part], safe=":*") for part in ACL_KEY)]
        return self._new(
            "acl",
            [who, each["operation"].lower(), each["resource_type"].lower(), each["resource_name"]],
            "/".join(key),
            cluster_id=cluster.refer("id"),
            principal=user.refer("principal") if user else each["principal"],
            resource_type=each["resource_type"],
            resource_name=each["resource_name"],
            pattern_type=each["pattern_type"],
            operation=each["operation"],
            permission=each["permission"],
            host=each["host"],
        )

    def _quota(
        self, cluster: Resource, each: dict[str, Any], users: dict[str, Resource]
    ) -> Resource:
        entity = {
            part: each[part] for part in ("user", "client_id", "ip") if each[part] is not None
        }
        user = users.get(entity.get("user", ""))
        key = [f"{part}={quote(value, safe='')}" for part, value in entity.items()]
        words = [user.name if part == "user" and user else value or f"any_{part}"
                 for part, value in entity.items()]  # fmt: skip
        named: dict[str, Value] = {
            **entity,
            **({"user": user.refer("username")} if user else {}),
            **{name: each[name] for name in QUOTA_VALUES},
        }
        return self._new(
            "client_quota",
            words if user else [cluster.name, *words],
            "/".join([cluster.import_id, *key]),
            cluster_id=cluster.refer("id"),
            **named,
        )


@pass_session
def terraform(session: Session, /, cluster: tuple[str, ...], file: str | None) -> None:
    """Write what there is as a Terraform configuration that takes it over.

    The organisation's settings and people, projects, service accounts, roles, budgets, clusters
    with their topics, credentials, ACLs, quotas and alerts; with --cluster only those clusters. No
    secret is in it.
    """
    export = Export(session)
    wanted = [names.resolve(session, names.CLUSTERS, each) for each in cluster]
    found = [] if wanted else list(export.organization())
    found += export.clusters(wanted)
    text = "\n".join([HEAD, *(each.text() for each in found)])
    if file is None or file == "-":
        sys.stdout.write(text)
        return
    try:
        Path(file).write_text(text)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
    session.note(f"{len(found)} resources are in {file}. Next: terraform plan")


def export_commands() -> click.Group:
    """`freshet export`."""
    group = click.Group("export", help="What there is, for other tools.")
    parameters: list[click.Parameter] = [
        click.Option(
            ["--cluster", "-c"],
            multiple=True,
            metavar="NAME_OR_ID",
            shell_complete=names.completing(names.CLUSTERS),
            help="Only this cluster, again and again.",
        ),
        click.Option(["--file", "-f"], metavar="FILE", help="Else it is printed."),
        *common(),
    ]
    group.add_command(
        click.Command("terraform", callback=terraform, params=parameters, help=terraform.__doc__)
    )
    return group
