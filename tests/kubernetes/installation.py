"""Renders copies of `provisioning/deliverables/kubernetes/` with secrets made for the test."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from provisioning.deliverables.kubernetes.make_secrets import ASKED_FILES, ASKED_LINES, make_secrets

Manifest = dict[str, Any]

ROOT = Path(__file__).parents[2]
KUSTOMIZE = ROOT / ".tools" / "bin" / "kustomize"
SYSTEM = "freshet-system"
# The kinds that other objects need are applied first, all other kinds after them.
FIRST = ("Namespace", "PriorityClass", "ServiceAccount", "ClusterRole")


def copy(folder: Path) -> Path:
    """Copies the kustomizations, and completes the overlays, apart from generated secrets."""
    shutil.copytree(ROOT / "provisioning" / "deliverables" / "kubernetes", folder)
    for name in ("production", "demo"):
        secrets = folder / "overlays" / name / "secrets"
        secrets.mkdir(exist_ok=True)
        for file in ASKED_FILES:
            (secrets / file).write_text(f"{file} of the tests\n")
    return folder


def production(folder: Path) -> list[Manifest]:
    """The objects of the production overlay, with its secrets completed."""
    secrets = folder / "overlays" / "production" / "secrets"
    make_secrets(secrets)
    with (secrets / "control-plane.env").open("a", encoding="utf-8") as file:
        file.writelines(f"{name}=of the tests\n" for name in ASKED_LINES)
    assert make_secrets(secrets) == []
    return render(folder / "overlays" / "production")


def demo(folder: Path) -> list[Manifest]:
    """The objects of the overlay for one node."""
    return render(folder / "overlays" / "demo")


def render(folder: Path) -> list[Manifest]:
    """The objects of a folder's kustomization, in an order in which they can be applied."""
    made = subprocess.run(
        [str(KUSTOMIZE), str(folder)], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    manifests: list[Manifest] = list(yaml.safe_load_all(made.stdout))
    rank = {kind: number for number, kind in enumerate(FIRST)}
    return sorted(manifests, key=lambda manifest: rank.get(manifest["kind"], len(FIRST)))


def pods_of(manifests: Iterable[Manifest]) -> dict[str, Manifest]:
    """The pod templates of Deployments, StatefulSets and Jobs, by the object's name."""
    return {
        manifest["metadata"]["name"]: manifest["spec"]["template"]
        for manifest in manifests
        if manifest["kind"] in {"Deployment", "StatefulSet", "Job"}
    }


def of_kind(manifests: Iterable[Manifest], kind: str) -> dict[str, Manifest]:
    """The objects of a kind, by name."""
    return {
        manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind
    }


def named(manifests: Iterable[Manifest], kind: str, start: str) -> Manifest:
    """The object whose name is `start`, with or without the digest that kustomize appends."""
    objects = of_kind(manifests, kind)
    return next(
        objects[name] for name in objects if re.fullmatch(f"{start}(-[a-z0-9]{{10}})?", name)
    )
