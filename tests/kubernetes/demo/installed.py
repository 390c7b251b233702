"""Installs Freshet on the machine's Kubernetes, with the demonstration's overlay."""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.kubernetes import installation
from tests.kubernetes.applying import apply_all, refused
from tests.kubernetes.client import Client
from tests.kubernetes.demo import stores
from tests.kubernetes.image.contents import USER
from tests.kubernetes.installation import SYSTEM, Manifest
from tests.kubernetes.pki import Authority

# Placeholders of the overlay for the address of the stores and for the folder of the node.
PLACE_OF_STORES = "stores.example.com"
PLACE_OF_DFS = "/var/lib/freshet-demo/dfs"
DOMAIN = "kafka.localhost"
# A time limit that is reached only where something is wrong.
READY_S = 600.0
LOOK_S = 0.5


class Installed:
    """An installation whose files are in a folder. `address`: where pods reach this machine."""

    def __init__(self, folder: Path, admin: Client, *, address: str, api_port: int) -> None:
        self._folder = folder
        self._admin = admin
        self._address = address
        self._api_port = api_port
        self.authority = Authority(folder / "gateway-pki")

    def install(self, image: str) -> None:
        """Applies the overlay. Its parts then start by themselves."""
        manifests = self._manifests(image)
        answers = apply_all(self._admin, manifests)
        assert refused(answers) == [], refused(answers)

    def await_ready(self, say: Callable[[str], None]) -> None:
        """Waits until every part is available, and reports each one that is."""
        deadline, pause, reported = time.monotonic() + READY_S, threading.Event(), set[str]()
        while True:
            parts = self._parts()
            for name in sorted(set(parts) - reported):
                if parts[name]:
                    reported.add(name)
                    say(f"{name} is up")
            if all(parts.values()):
                return
            assert time.monotonic() < deadline, self.explain()
            pause.wait(LOOK_S)

    def addresses(self, component: str, port: int) -> list[tuple[str, int]]:
        """The (address, port) pairs of the ready pods of a part."""
        selector = f"app.kubernetes.io/component={component}"
        path = f"/api/v1/namespaces/{SYSTEM}/pods"
        pods = self._admin.get(path, labelSelector=selector)["items"]
        return sorted((pod["status"]["podIP"], port) for pod in pods if _is_ready(pod))

    def explain(self) -> str:
        """What Kubernetes reports of the parts that are not available."""
        events = self._admin.get(f"/api/v1/namespaces/{SYSTEM}/events")["items"]
        lines = [f"{event['involvedObject']['name']}: {event['message']}" for event in events[-40:]]
        return "\n".join([json.dumps(self._parts()), *lines])

    def _manifests(self, image: str) -> list[Manifest]:
        copy = installation.copy(self._folder / "kubernetes")
        dfs = self._folder / "dfs"
        dfs.mkdir()
        os.chown(dfs, USER, USER)
        overlay = copy / "overlays" / "demo"
        for path in (entry for entry in overlay.iterdir() if entry.is_file()):
            text = path.read_text()
            text = text.replace(PLACE_OF_STORES, self._address).replace(PLACE_OF_DFS, str(dfs))
            path.write_text(text.replace("newTag: demo", f"newTag: {image.rpartition(':')[2]}"))
        names = (f"DNS:{DOMAIN}", f"DNS:*.{DOMAIN}")
        self.authority.issue("gateway", f"/CN={DOMAIN}", usage="serverAuth", names=names)
        secrets = overlay / "secrets"
        certificate = self.authority.certificate("gateway").read_text()
        (secrets / "gateway.crt").write_text(certificate)
        (secrets / "gateway.key").write_text(self.authority.key("gateway").read_text())
        keys = f"aws_access_key_id = {stores.ACCESS_KEY}\naws_secret_access_key = "
        (secrets / "s3-credentials").write_text(f"[default]\n{keys}{stores.SECRET_KEY}\n")
        here = copy / "overlays" / "here"
        here.mkdir()
        (here / "kustomization.yaml").write_text(json.dumps(self._here()))
        return installation.render(here)

    def _here(self) -> dict[str, Any]:
        """The patches for this Kubernetes only: it has no registry, and no Services.

        So the keeper gets the address of the API server.
        """
        env = "/spec/template/spec/containers/0/env/-"
        port = str(self._api_port)
        patch = [
            {"op": "add", "path": env, "value": {"name": name, "value": value}}
            for name, value in (
                ("KUBERNETES_SERVICE_HOST", self._address),
                ("KUBERNETES_SERVICE_PORT", port),
            )
        ]
        never = {"op": "add", "path": "/spec/template/spec/containers/0/imagePullPolicy"}
        return {
            "resources": ["../demo"],
            "patches": [
                {"patch": json.dumps(patch), "target": {"kind": "Deployment", "name": "keeper"}},
                {
                    "patch": json.dumps([{**never, "value": "Never"}]),
                    "target": {"kind": "Deployment|StatefulSet|Job"},
                },
            ],
        }

    def _parts(self) -> dict[str, bool]:
        """Whether all of a part is ready, by part."""
        parts: dict[str, bool] = {}
        for plural in ("deployments", "statefulsets"):
            path = f"/apis/apps/v1/namespaces/{SYSTEM}/{plural}"
            for item in self._admin.get(path)["items"]:
                ready = item.get("status", {}).get("readyReplicas", 0)
                parts[item["metadata"]["name"]] = ready >= item["spec"]["replicas"]
        job = self._admin.ask("GET", f"/apis/batch/v1/namespaces/{SYSTEM}/jobs/migrate")
        assert job.status == http.client.OK, job
        parts["migrate"] = job.document.get("status", {}).get("succeeded", 0) > 0
        return parts


def _is_ready(pod: Manifest) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
    )
