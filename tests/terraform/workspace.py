"""A folder with a configuration, and what Terraform says of it."""

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
    """One configuration with its state. `folder` is empty at first."""

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
        """Makes this the configuration."""
        (self.folder / "main.tf").write_text(HEAD + configuration)

    def environment(self) -> dict[str, str]:
        """What Terraform is started with: nothing of the caller's own settings."""
        given = {f"TF_VAR_{name}": json.dumps(value) for name, value in self.secrets.items()}
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "CHECKPOINT_DISABLE": "1",
            "TF_IN_AUTOMATION": "1",
            "TF_CLI_CONFIG_FILE": str(self.folder / "terraform.rc"),
            "FRESHET_ENDPOINT": self.endpoint,
            "FRESHET_API_KEY": self.key,
            **given,
        }

    def command(self, *arguments: str) -> list[str]:
        """A command line of Terraform's."""
        return [self.terraform, arguments[0], "-no-color", *arguments[1:]]

    def run(self, *arguments: str, status: int = 0) -> str:
        """Runs a command to its end; returns all that it said."""
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
        """Makes it so."""
        return self.run("apply", "-auto-approve", "-input=false", *arguments)

    def plan_is_empty(self) -> bool:
        """Tells whether Terraform finds nothing to do. Refreshes, and leaves its plan on disk."""
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
        """What Terraform would do to resources, by address; what stays as it is is left out."""
        self.run("plan", "-input=false", "-out=plan.bin", *arguments)
        shown = json.loads(self.run("show", "-json", "plan.bin").splitlines()[-1])
        changes = {
            change["address"]: change["change"]["actions"]
            for change in shown["resource_changes"]
            if change["mode"] == "managed"
        }
        return {address: what for address, what in changes.items() if what != ["no-op"]}

    def outputs(self) -> dict[str, Any]:
        """Outputs, by name."""
        shown = json.loads(self.run("output", "-json"))
        return {name: each["value"] for name, each in shown.items()}

    def kept(self) -> bytes:
        """All that Terraform keeps on disk: state, its backup, and plans, unpacked."""
        found = b""
        for file in sorted(self.folder.iterdir()):
            if file.suffix == ".bin":
                with zipfile.ZipFile(file) as plan:
                    found += b"".join(plan.read(name) for name in plan.namelist())
            elif "tfstate" in file.name:
                found += file.read_bytes()
        return found
