"""The part of Kubernetes' API that the driver needs, on plain objects.

The official client does connections, credentials and their renewal; its typed models are left
aside, because server-side apply means what is written and nothing else.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException, OpenApiException
from kubernetes.config.config_exception import ConfigException

from provisioning.cell.drivers.kubernetes.manifests import MANAGER, Manifest

# The most objects in one answer to a list.
PAGE = 500
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
AUTHORIZATION = ["BearerToken"]
# Requests that the API server has no time for now, and how often they are made again within a call.
BUSY = {http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE}
ATTEMPTS = 4
RETRY_AFTER_MAX_S = 5.0


@dataclass(frozen=True)
class Kind:
    """Where objects of a kind are found."""

    group: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """Of one object, or of all in a namespace, or of all."""
        space = f"/namespaces/{quote(namespace)}" if namespace and self.namespaced else ""
        tail = "".join(f"/{quote(each)}" for each in (name, part) if each)
        return f"/{self.group}{space}/{self.plural}{tail}"


KINDS = {
    "Namespace": Kind("api/v1", "namespaces", namespaced=False),
    "PersistentVolume": Kind("api/v1", "persistentvolumes", namespaced=False),
    "PersistentVolumeClaim": Kind("api/v1", "persistentvolumeclaims"),
    "Secret": Kind("api/v1", "secrets"),
    "ServiceAccount": Kind("api/v1", "serviceaccounts"),
    "ResourceQuota": Kind("api/v1", "resourcequotas"),
    "ConfigMap": Kind("api/v1", "configmaps"),
    "Pod": Kind("api/v1", "pods"),
    "Node": Kind("api/v1", "nodes", namespaced=False),
    "NetworkPolicy": Kind("apis/networking.k8s.io/v1", "networkpolicies"),
    "PodDisruptionBudget": Kind("apis/policy/v1", "poddisruptionbudgets"),
    "Deployment": Kind("apis/apps/v1", "deployments"),
}


class ApiError(Exception):
    """The API server refused a call, with an HTTP status; it did nothing."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Lost(OSError):
    """No answer came: the call may have been done or not."""


@dataclass(frozen=True)
class Listing:
    """Objects, all as they were at one version of the whole store."""

    items: list[Manifest]
    resource_version: str


@dataclass(frozen=True)
class Event:
    """A change that a watch saw: `ADDED`, `MODIFIED`, `DELETED`, or `BOOKMARK`: so far it is."""

    type: str
    object: Manifest


class Api:
    """Calls that block; each as long as `timeout_s` at most. Safe in several threads."""

    def __init__(
        self,
        connection: client.ApiClient,
        *,
        timeout_s: float,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._closed = threading.Event()
        self._headers = headers

    @classmethod
    def connect(cls, kubeconfig: str = "", *, timeout_s: float, connections: int = 32) -> Api:
        """By a kubeconfig file, or without one as a pod's service account.

        Raises `ConfigException` where there is neither.
        """
        settings = client.Configuration()
        if kubeconfig:
            config.load_kube_config(kubeconfig, client_configuration=settings)
        else:
            config.load_incluster_config(client_configuration=settings)
        settings.retries = urllib3.Retry(0)
        settings.connection_pool_maxsize = connections
        return cls(client.ApiClient(settings), timeout_s=timeout_s)

    def impersonating(self, user: str, groups: Sequence[str]) -> Api:
        """Calls over the same connections as somebody else, where that is allowed."""
        headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        return Api(self._connection, timeout_s=self._timeout_s, headers=tuple(headers))

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """One object; None where there is none."""
        try:
            return self._call("GET", KINDS[kind].path(namespace, name))
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return None
            raise

    def list(self, kind: str, selector: str, namespace: str = "") -> Listing:
        """All objects of a kind with these labels, in as many pages as it takes."""
        items: list[Manifest] = []
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            page = self._call("GET", KINDS[kind].path(namespace), query)
            # What each item of a list leaves out.
            named = {"apiVersion": page["apiVersion"], "kind": kind}
            items += [{**named, **item} for item in page["items"]]
            carry_on = page["metadata"].get("continue")
            if not carry_on:
                return Listing(items, page["metadata"]["resourceVersion"])
            query["continue"] = carry_on

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Makes an object, or has its fields be these. Fields that are not named stay."""
        named = manifest["metadata"]
        path = KINDS[manifest["kind"]].path(named.get("namespace", ""), named["name"])
        query = {"fieldManager": MANAGER, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        return self._call("PATCH", path, query, manifest, APPLY)

    def merge(self, kind: str, name: str, namespace: str, change: Mapping[str, Any]) -> Manifest:
        """Changes some fields of an object that is there."""
        path = KINDS[kind].path(namespace, name)
        return self._call("PATCH", path, {"fieldManager": MANAGER}, change, MERGE)

    def delete(
        self, kind: str, name: str, namespace: str = "", *, grace_s: int | None = None
    ) -> bool:
        """Asks for an object's end, which may come later; False where there is none."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._call("DELETE", KINDS[kind].path(namespace, name), None, body)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return False
            raise
        return True

    def watch(
        self, kind: str, selector: str, resource_version: str, *, limit_s: int, silent_s: float
    ) -> Watch:
        """Changes behind a version, for `limit_s` seconds at most; breaks after `silent_s` seconds
        without any.

        Raises `ApiError` with status 410 where that version is forgotten, at once or while it is
        read: then list again.
        """
        query = {
            "labelSelector": selector,
            "resourceVersion": resource_version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(limit_s),
        }
        response = self._send("GET", KINDS[kind].path(), query, None, JSON, silent_s)
        if response.status != http.client.OK:
            raise _refusal(response.status, _body(response))
        return Watch(response)

    def close(self) -> None:
        """Lets the connections go, and whoever waits for another attempt."""
        self._closed.set()
        self._connection.rest_client.pool_manager.clear()

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,  # noqa: ANN401 (JSON)
        content_type: str = JSON,
    ) -> Manifest:
        for attempt in range(1, ATTEMPTS + 1):
            response = self._send(method, path, query, body, content_type, self._timeout_s)
            document = _body(response)
            after = response.headers.get("Retry-After", "")
            if response.status not in BUSY or not after.isdigit() or attempt == ATTEMPTS:
                break
            # It says by that header that it did nothing.
            self._closed.wait(min(float(after), RETRY_AFTER_MAX_S))
        if response.status >= http.client.INTERNAL_SERVER_ERROR:
            message = f"{method} {path}: {response.status} {document.get('message', '')}"
            raise Lost(message)
        if response.status >= http.client.BAD_REQUEST:
            raise _refusal(response.status, document)
        if "kind" not in document:
            message = f"{method} {path}: what answers is no API server"
            raise Lost(message)
        return document

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,  # noqa: ANN401 (JSON)
        content_type: str,
        timeout_s: float,
    ) -> urllib3.HTTPResponse:
        header = {"Accept": JSON, "Content-Type": content_type, **dict(self._headers)}
        sent = self._connection.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params=header,
            auth_settings=AUTHORIZATION,
        )
        try:
            answer = self._connection.call_api(*sent[:3], body=body, _request_timeout=timeout_s)
        except (ApiException, OpenApiException, urllib3.exceptions.HTTPError, OSError) as error:
            message = f"{method} {path}: {error}"
            raise Lost(message) from error
        response: urllib3.HTTPResponse = answer.response
        return response


class Watch:
    """Events as they come. `close` ends it from another thread too."""

    def __init__(self, response: urllib3.HTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[Event]:
        """Ends where the server ends it. Raises `Lost` and `ApiError`."""
        rest = b""
        try:
            for piece in self._response.stream(65_536, decode_content=True):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield _event(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            message = f"a watch broke: {error}"
            raise Lost(message) from error
        finally:
            # With its connection: there may be more of it to come.
            self._response.close()

    def close(self) -> None:
        """Has the reader's next look be the last one."""
        try:
            self._response.shutdown()
        except (ValueError, OSError):
            # It ended by itself meanwhile.
            return


def _event(line: bytes) -> Event:
    document = json.loads(line)
    if document["type"] == "ERROR":
        status = document["object"]
        raise _refusal(int(status.get("code", 0)), status)
    return Event(document["type"], document["object"])


def _body(response: urllib3.HTTPResponse) -> Manifest:
    try:
        data = response.read()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        message = f"an answer broke: {error}"
        raise Lost(message) from error
    finally:
        response.release_conn()
    try:
        document = json.loads(data)
    except ValueError:
        document = None
    return (
        document
        if isinstance(document, dict)
        else {"message": data[:200].decode("utf-8", "replace")}
    )


def _refusal(status: int, document: Manifest) -> ApiError:
    return ApiError(status, str(document.get("reason", "")), str(document.get("message", "")))


__all__ = [
    "KINDS",
    "Api",
    "ApiError",
    "ConfigException",
    "Event",
    "Kind",
    "Listing",
    "Lost",
    "Watch",
]
