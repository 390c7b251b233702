"""A folder with a configuration, in which Terraform runs."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TIMEOUT_S = 280
HEAD = """
terraform {
  required_providers {
    freshet = { source = "freshet/freshet" }
  }
}
"""


@dataclass
class Workspace:
    """A folder with one configuration and its state. `folder` is empty at first.

    `secrets` are values of Terraform's variables, which are passed in its environment.
    """

    folder: Path
    terraform: str
    # The folder with the provider's binary.
    provider: Path
    endpoint: str
    key: str
    secrets: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = f"""
            provider_installation {{
              dev_overrides {{ "freshet/freshet" = "{self.provider}" }}
              direct {{}}
            }}
        """
        (self.folder / "terraform.rc").write_text(settings)

    def write(self, configuration: str) -> None:
        """Makes this text the workspace's configuration."""
        (self.folder / "main.tf").write_text(HEAD + configuration)

    def environment(self) -> dict[str, str]:
        """Returns Terraform's environment, which has none of the caller's own settings."""
        variables = {f"TF_VAR_{name}": json.dumps(value) for name, value in self.secrets.items()}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "TF_CLI_CONFIG_FILE": str(self.folder / "terraform.rc"),
            "FRESHET_ENDPOINT": self.endpoint,
            "FRESHET_API_KEY": self.key,
            **variables,
        }

    def command(self, *arguments: str) -> list[str]:
        """Returns the command line that runs a command of Terraform."""
        return [self.terraform, arguments[0], "-no-color", *arguments[1:]]

    def run(self, *arguments: str, status: int = 0) -> str:
        """Runs a command, which must end with this status. Returns all of its output."""
        done = subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == status, f"{arguments}: {done.returncode}\n{done.stdout[-6000:]}"
        return done.stdout

    def apply(self, *arguments: str) -> str:
        """Applies the configuration. Returns Terraform's output."""
        return self.run("apply", "-auto-approve", "-input=false", *arguments)

    def plan_is_empty(self) -> bool:
        """Plans, which reads all resources anew, and returns whether there is nothing to change.

        The plan is left on disk, so that `kept` has it.
        """
        done = subprocess.run(
            self.command("plan", "-input=false", "-detailed-exitcode", "-out=plan.bin"),
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode in {0, 2}, done.stdout + done.stderr
        return done.returncode == 0

    def planned(self, *arguments: str) -> dict[str, list[str]]:
        """Returns the actions that Terraform plans, by the resource's address.

        Resources that stay as they are are left out.
        """
        self.run("plan", "-input=false", "-out=plan.bin", *arguments)
        shown = json.loads(self.run("show", "-json", "plan.bin").splitlines()[-1])
        changes = {
            change["address"]: change["change"]["actions"]
            for change in shown["resource_changes"]
            if change["mode"] == "managed"
        }
        return {address: what for address, what in changes.items() if what != ["no-op"]}

    def outputs(self) -> dict[str, Any]:
        """Returns the values of the outputs, by name."""
        shown = json.loads(self.run("output", "-json"))
        return {name: output["value"] for name, output in shown.items()}

    def kept(self) -> bytes:
        """Returns all that Terraform keeps on disk: state, its backup, and unpacked plans."""
        content = b""
        for file in sorted(self.folder.iterdir()):
            if file.suffix == ".bin":
                with zipfile.ZipFile(file) as plan:
                    content += b"".join(plan.read(name) for name in plan.namelist())
            elif "tfstate" in file.name:
                content += file.read_bytes()
        return content
