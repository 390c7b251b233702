"""Fixtures: the built provider, and for each test an organization of the shared service."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

import pytest

from tests.service.api import Api
from tests.supervisor.run import ROOT
from tests.terraform.door import Door
from tests.terraform.resources import new_passwords
from tests.terraform.workspace import Workspace

SOURCE = ROOT / "provisioning/deliverables/terraform"
BUILD_TIMEOUT_S = 280


@pytest.fixture(scope="session")
def terraform():
    """The path of the Terraform program."""
    tools = f"{ROOT}/.tools/bin{os.pathsep}{os.environ['PATH']}"
    program = shutil.which("terraform", path=tools)
    assert program, "no Terraform on PATH nor in .tools/bin: make setup"
    return program


@pytest.fixture(scope="session")
def provider(tmp_path_factory):
    """The folder with the provider's binary, which is built from this checkout's source."""
    folder = tmp_path_factory.mktemp("provider")
    subprocess.run(
        ["go", "build", "-buildvcs=false", "-o", folder / "terraform-provider-freshet", "."],
        cwd=SOURCE,
        check=True,
        timeout=BUILD_TIMEOUT_S,
    )
    return folder


@dataclass(frozen=True)
class Team:
    """An organization, the door that its Terraform's requests go through, and its workspaces."""

    api: Api
    door: Door
    workspaces: list[Workspace]

    def clusters(self) -> list[str]:
        """Returns the ids of the organization's clusters that are not deleted."""
        items = self.api.call("GET", "/clusters")["items"]
        return [item["id"] for item in items if item["deleted_at"] is None]

    def workspace(self, name: str = "main") -> Workspace:
        """Returns the team's first workspace, or makes an empty one where `name` is not `main`."""
        first = self.workspaces[0]
        if name == "main":
            return first
        other = Workspace(
            first.folder.parent / name,
            first.terraform,
            first.provider,
            first.endpoint,
            first.key,
            first.secrets,
        )
        self.workspaces.append(other)
        return other


@pytest.fixture
def team(service, terraform, provider, tmp_path):
    """An organization with an API key, and an empty workspace."""
    api = Api.sign_up(service.address)
    key = api.http.headers["Authorization"].removeprefix("Bearer ")
    with Door(service.address) as door:
        secrets = {"passwords": new_passwords()}
        first = Workspace(tmp_path / "main", terraform, provider, door.address, key, secrets)
        yield Team(api, door, [first])
    api.close()
