"""Applies manifests as `kubectl apply --server-side` does, and waits until they take effect."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.kubernetes.client import APPLY, Answer, Client
from tests.kubernetes.installation import Manifest

# A time limit that a test reaches only where something is wrong.
IN_FORCE_S = 60.0
LOOK_S = 0.05
# The kinds that give the keeper its rights and limit them; none of them runs anything.
NAMED_FREELY = {"Namespace", "ServiceAccount"}
RIGHTS = {
    "Namespace",
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


class Paths:
    """The paths of objects, from the API server's own list of resources."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[str, Mapping[str, Any]] = {}

    def of(self, manifest: Manifest) -> str:
        """The path of an object."""
        kind = self._resources(manifest["apiVersion"])[manifest["kind"]]
        named = manifest["metadata"]
        space = f"/namespaces/{named['namespace']}" if kind["namespaced"] else ""
        return f"{_root(manifest['apiVersion'])}{space}/{kind['name']}/{named['name']}"

    def _resources(self, version: str) -> Mapping[str, Any]:
        if version not in self._known:
            resources = self._client.get(_root(version))["resources"]
            # Subresources, such as `pods/log`, are left out.
            whole = [resource for resource in resources if "/" not in resource["name"]]
            self._known[version] = {resource["kind"]: resource for resource in whole}
        return self._known[version]


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def apply_all(
    client: Client, manifests: Iterable[Manifest], *, dry_run: bool = False
) -> list[tuple[Manifest, Answer]]:
    """Applies manifests as `kubectl apply --server-side` does. Returns the answers."""
    paths = Paths(client)
    query = {"fieldManager": "kubectl", "force": "true", **({"dryRun": "All"} if dry_run else {})}
    return [
        (manifest, client.ask("PATCH", paths.of(manifest), manifest, kind=APPLY, **query))
        for manifest in manifests
    ]


def refused(answers: Iterable[tuple[Manifest, Answer]]) -> list[str]:
    """The refused manifests, with one line for each."""
    return [
        f"{manifest['kind']} {manifest['metadata']['name']}: {answer.message}"
        for manifest, answer in answers
        if answer.status not in {http.client.OK, http.client.CREATED}
    ]


def token_of(client: Client, namespace: str, account: str) -> str:
    """A token of a service account, as its pods get one."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = client.ask("POST", path, request)
    assert answer.status == http.client.CREATED, json.dumps(answer.document)
    return str(answer.document["status"]["token"])


def until(holds: Callable[[], bool]) -> None:
    """Waits until `holds` is true: the API server reads policies and roles by watches, later."""
    deadline, pause = time.monotonic() + IN_FORCE_S, threading.Event()
    while not holds():
        assert time.monotonic() < deadline, f"not in force after {IN_FORCE_S} s"
        pause.wait(LOOK_S)


def install_rights(admin: Client, keeper: Callable[[], Client], manifests: list[Manifest]) -> None:
    """Applies the keeper's rights, and returns once they are in force.

    `keeper` makes a client with the keeper's token, once that exists.
    """
    rights = [manifest for manifest in manifests if _is_right(manifest)]
    assert refused(apply_all(admin, rights)) == []
    client, allowed, beyond = keeper(), "freshet-cl-in-bounds", "freshet-beyond"
    try:
        until(lambda: _would_make(client, allowed) and not _would_make(client, beyond))
    finally:
        client.close()


def _is_right(manifest: Manifest) -> bool:
    """Whether a manifest is part of the keeper's rights; the deletion guard is not."""
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    return kind in RIGHTS and (kind in NAMED_FREELY or name.startswith("freshet-keeper"))


def _would_make(client: Client, name: str) -> bool:
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": level},
    }
    query = {"fieldManager": "tests", "force": "true", "dryRun": "All"}
    path = f"/api/v1/namespaces/{name}"
    status = client.ask("PATCH", path, namespace, kind=APPLY, **query).status
    return status in {http.client.OK, http.client.CREATED}
