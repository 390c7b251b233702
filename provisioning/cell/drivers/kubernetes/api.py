"""The part of Kubernetes' API that the driver needs, on plain objects.

The official client handles connections, credentials and their renewal. Its typed models are not
used: server-side apply takes ownership of every field that is sent, and the models send more fields
than a manifest names.
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

# The most objects on one page of a list.
PAGE = 500
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON = "application/json"
AUTHORIZATION = ["BearerToken"]
# Statuses of requests that the API server has no time for now, and how often one call sends them.
BUSY = {http.client.TOO_MANY_REQUESTS, http.client.SERVICE_UNAVAILABLE}
ATTEMPTS = 4
RETRY_AFTER_MAX_S = 5.0


@dataclass(frozen=True)
class Kind:
    """The API group and the plural name of a kind of objects, which make its URL."""

    group: str
    plural: str
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "", part: str = "") -> str:
        """The URL path of one object, of all objects in a namespace, or of all objects."""
        space = f"/namespaces/{quote(namespace)}" if namespace and self.namespaced else ""
        tail = "".join(f"/{quote(segment)}" for segment in (name, part) if segment)
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
    """The API server refused a call with an HTTP status, and changed nothing."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Lost(OSError):
    """No answer came, so the call may or may not have taken effect."""


@dataclass(frozen=True)
class Listing:
    """A list of objects, all as they were at one version of the API server's store."""

    items: list[Manifest]
    resource_version: str


@dataclass(frozen=True)
class Event:
    """An event of a watch. `type`: `ADDED`, `MODIFIED`, `DELETED`, or `BOOKMARK` (a version)."""

    type: str
    object: Manifest


class Api:
    """Blocking calls to the API server, each of at most `timeout_s`. It is thread-safe.

    Every call raises `ApiError` where it is refused, and `Lost` where no answer came.
    """

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
        """Connects with a kubeconfig file, or without one as the pod's service account.

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
        """The same API as another user, which our user must be allowed to impersonate."""
        headers = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)]
        return Api(self._connection, timeout_s=self._timeout_s, headers=tuple(headers))

    def get(self, kind: str, name: str, namespace: str = "") -> Manifest | None:
        """Reads one object; None where there is none."""
        try:
            return self._request_json("GET", KINDS[kind].path(namespace, name))
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return None
            raise

    def list(self, kind: str, selector: str, namespace: str = "") -> Listing:
        """Lists all objects of a kind with these labels, in as many pages as it takes."""
        items: list[Manifest] = []
        query = {"labelSelector": selector, "limit": str(PAGE)}
        while True:
            page = self._request_json("GET", KINDS[kind].path(namespace), query)
            # Items of a list lack these two fields.
            named = {"apiVersion": page["apiVersion"], "kind": kind}
            items += [{**named, **item} for item in page["items"]]
            carry_on = page["metadata"].get("continue")
            if not carry_on:
                return Listing(items, page["metadata"]["resourceVersion"])
            query["continue"] = carry_on

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Creates an object, or sets the fields that the manifest names. Other fields stay."""
        named = manifest["metadata"]
        path = KINDS[manifest["kind"]].path(named.get("namespace", ""), named["name"])
        query = {"fieldManager": MANAGER, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        return self._request_json("PATCH", path, query, manifest, APPLY)

    def merge(self, kind: str, name: str, namespace: str, change: Mapping[str, Any]) -> Manifest:
        """Sets the fields that `change` names on an existing object, and removes those set to None.

        A list is replaced as a whole. Returns the object as it is afterwards. `namespace` is empty
        for a kind without one. Raises `ApiError` with status 404 where there is no such object.
        """
        path = KINDS[kind].path(namespace, name)
        return self._request_json("PATCH", path, {"fieldManager": MANAGER}, change, MERGE)

    def delete(
        self, kind: str, name: str, namespace: str = "", *, grace_s: int | None = None
    ) -> bool:
        """Requests the deletion of an object, which may end later; False where there is none."""
        body: dict[str, Any] = {"propagationPolicy": "Background"}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            self._request_json("DELETE", KINDS[kind].path(namespace, name), None, body)
        except ApiError as error:
            if error.status == http.client.NOT_FOUND:
                return False
            raise
        return True

    def watch(
        self, kind: str, selector: str, resource_version: str, *, limit_s: int, silent_s: float
    ) -> ObjectWatch:
        """Watches changes after a version, for at most `limit_s` seconds.

        It raises `Lost` after `silent_s` seconds without an event. It raises `ApiError` with status
        410, at once or while events are read, where the API server no longer has that version:
        then list again.
        """
        query = {
            "labelSelector": selector,
            "resourceVersion": resource_version,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(limit_s),
        }
        response = self._send_request("GET", KINDS[kind].path(), query, None, JSON, silent_s)
        if response.status != http.client.OK:
            raise _refusal_from(response.status, _read_body(response))
        return ObjectWatch(response)

    def close(self) -> None:
        """Closes the connections, and ends pauses before another attempt."""
        self._closed.set()
        self._connection.rest_client.pool_manager.clear()

    def _request_json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,  # noqa: ANN401 (JSON)
        content_type: str = JSON,
    ) -> Manifest:
        for attempt in range(1, ATTEMPTS + 1):
            response = self._send_request(method, path, query, body, content_type, self._timeout_s)
            document = _read_body(response)
            after = response.headers.get("Retry-After", "")
            if response.status not in BUSY or not after.isdigit() or attempt == ATTEMPTS:
                break
            # With this header the server says that it did nothing, so the call may be repeated.
            self._closed.wait(min(float(after), RETRY_AFTER_MAX_S))
        if response.status >= http.client.INTERNAL_SERVER_ERROR:
            message = f"{method} {path}: {response.status} {document.get('message', '')}"
            raise Lost(message)
        if response.status >= http.client.BAD_REQUEST:
            raise _refusal_from(response.status, document)
        if "kind" not in document:
            message = f"{method} {path}: the answer is not one of an API server"
            raise Lost(message)
        return document

    def _send_request(
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


class ObjectWatch:
    """The events of a watch, as they come. Another thread may end it with `close`."""

    def __init__(self, response: urllib3.HTTPResponse) -> None:
        self._response = response

    def __iter__(self) -> Iterator[Event]:
        """Yields events until the server ends the watch. Raises `Lost` and `ApiError`."""
        rest = b""
        try:
            for piece in self._response.stream(65_536, decode_content=True):
                *lines, rest = (rest + piece).split(b"\n")
                for line in lines:
                    yield _parse_event(line)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            message = f"a watch broke: {error}"
            raise Lost(message) from error
        finally:
            # This closes the connection too, because unread events may still come over it.
            self._response.close()

    def close(self) -> None:
        """Ends the watch: the thread that reads it gets no further event."""
        try:
            self._response.shutdown()
        except (ValueError, OSError):
            # The watch has ended by itself meanwhile.
            return


def _parse_event(line: bytes) -> Event:
    document = json.loads(line)
    if document["type"] == "ERROR":
        status = document["object"]
        raise _refusal_from(int(status.get("code", 0)), status)
    return Event(document["type"], document["object"])


def _read_body(response: urllib3.HTTPResponse) -> Manifest:
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


def _refusal_from(status: int, document: Manifest) -> ApiError:
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
    "ObjectWatch",
]
