"""Objects of an S3-compatible store from Python: usage files, documents, what a purge removes.

The engine reads and writes segments itself, in Rust. `metering.events.store.FolderUsageStore` has
the same interface for a folder.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

import botocore.session
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

from brokers.locations import S3Location

__all__ = ["ObjectStoreError", "S3Objects"]

ATTEMPTS = 6
"""How often a request is tried, with growing pauses: a store throttles a client for seconds."""
CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 30
CONNECTIONS = 16
# A larger object is sent in parts of this size, so that a lost connection costs one part.
PART_BYTES = 16 * 1024 * 1024
# The most objects that one request removes.
REMOVED_AT_ONCE = 1000
# How often a put is tried while another client writes the same object at that moment.
CONFLICTS_MAX = 10
CONFLICT_PAUSE_S = 0.05
# The region where neither location nor environment has one; stores other than AWS ignore it.
REGION = "us-east-1"


class ObjectStoreError(OSError):
    """The store did not carry a request out, or it is not known whether it did."""


class S3Objects:
    """Immutable objects of an S3-compatible bucket by key: a `metering.events.store.UsageStore`.

    For any number of threads. Every call raises `OSError` where the store cannot be reached or
    refuses; requests that are throttled or lost are repeated before that.
    """

    def __init__(self, location: S3Location) -> None:
        self.location = location
        self._lock = threading.Lock()
        self._opened: tuple[tuple[int, int] | None, BaseClient] | None = None

    def put_new(self, key: str, data: bytes) -> bool:
        """Stores an object unless there is one of this key; False where there is, of any content.

        The object is durable when this returns, and nobody ever sees a part of it. Where an answer
        was lost, the object is read: one with these very bytes counts as stored.
        """
        send = self._put if len(data) <= PART_BYTES else self._put_in_parts
        for attempt in range(CONFLICTS_MAX):
            answer = send(self._key(key), data)
            if answer == "stored":
                return True
            if answer == "unclear":
                return self._is(key, data)
            if answer == "taken":
                return False
            time.sleep(CONFLICT_PAUSE_S * 2**attempt)
        message = f"{key}: others write it all the time"
        raise ObjectStoreError(message)

    def get(self, key: str) -> bytes:
        """An object. Raises `FileNotFoundError`."""
        with _as_os_error(key):
            answer = self._client().get_object(Bucket=self.location.bucket, Key=self._key(key))
            body: bytes = answer["Body"].read()
        return body

    def read(self, key: str, bytes_max: int) -> bytes:
        """The first `bytes_max` bytes of an object. Raises `FileNotFoundError`."""
        with _as_os_error(key):
            answer = self._client().get_object(Bucket=self.location.bucket, Key=self._key(key))
            with closing(answer["Body"]) as stream:
                body: bytes = stream.read(bytes_max)
        return body

    def read_part(self, key: str, start: int, length: int) -> bytes:
        """So many bytes from `start` on, fewer at the object's end. Raises `FileNotFoundError`."""
        return self._read_range(key, f"bytes={start}-{start + length - 1}")[0]

    def read_end(self, key: str, length: int) -> tuple[bytes, int]:
        """The last bytes, all of a shorter object, and its size. Raises `FileNotFoundError`."""
        return self._read_range(key, f"bytes=-{length}")

    def _read_range(self, key: str, span: str) -> tuple[bytes, int]:
        """The bytes of a range, as HTTP names it, and the object's size."""
        with _as_os_error(key):
            answer = self._client().get_object(
                Bucket=self.location.bucket, Key=self._key(key), Range=span
            )
            body: bytes = answer["Body"].read()
        # `bytes 0-99/1234`; a store that sends all of it names no range.
        whole = answer.get("ContentRange", f"/{len(body)}")
        return body, int(whole.rpartition("/")[2])

    def list(self, prefix: str) -> Iterator[str]:
        """The keys that begin with `prefix`, in order.

        Empty objects in the place of folders, which other programs make, are left out.
        """
        for name in self._names(prefix):
            if not name.endswith("/"):
                yield name.removeprefix(self.location.prefix)

    def remove(self, prefix: str) -> int:
        """Removes all objects whose keys begin with `prefix`, and uploads under way.

        Returns the number of objects. Repeating it changes nothing. It stops at the first error and
        can be called again.
        """
        removed, all_names = 0, self._names(prefix)
        while names := [{"Key": name} for name in islice(all_names, REMOVED_AT_ONCE)]:
            with _as_os_error(prefix):
                answer = self._client().delete_objects(
                    Bucket=self.location.bucket, Delete={"Objects": names, "Quiet": True}
                )
            for error in answer.get("Errors", ()):
                message = f"{error['Key']}: {error.get('Code')} {error.get('Message')}"
                raise ObjectStoreError(message)
            removed += len(names)
        self._abort_uploads(prefix)
        return removed

    def _names(self, prefix: str) -> Iterator[str]:
        """The bucket's own names of all objects whose keys begin with `prefix`, in order."""
        pages = self._client().get_paginator("list_objects_v2")
        place = {"Bucket": self.location.bucket, "Prefix": self.location.prefix + prefix}
        with _as_os_error(prefix):
            for page in pages.paginate(**place):
                for item in page.get("Contents", ()):
                    yield item["Key"]

    def _abort_uploads(self, prefix: str) -> None:
        client, bucket = self._client(), self.location.bucket
        pages = client.get_paginator("list_multipart_uploads")
        with _as_os_error(prefix):
            for page in pages.paginate(Bucket=bucket, Prefix=self.location.prefix + prefix):
                for upload in page.get("Uploads", ()):
                    client.abort_multipart_upload(
                        Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                    )

    def _put(self, key: str, data: bytes) -> str:
        def send() -> Any:  # noqa: ANN401 (botocore's)
            return self._client().put_object(
                Bucket=self.location.bucket, Key=key, Body=data, IfNoneMatch="*"
            )

        return _outcome(key, send)

    def _put_in_parts(self, key: str, data: bytes) -> str:
        client, place = self._client(), {"Bucket": self.location.bucket, "Key": key}
        with _as_os_error(key):
            upload = {**place, "UploadId": client.create_multipart_upload(**place)["UploadId"]}
        answer = "unclear"
        try:
            parts = []
            with _as_os_error(key):
                for number, at in enumerate(range(0, len(data), PART_BYTES), start=1):
                    part = data[at : at + PART_BYTES]
                    sent = client.upload_part(**upload, PartNumber=number, Body=part)
                    parts.append({"PartNumber": number, "ETag": sent["ETag"]})
            answer = _outcome(
                key,
                lambda: client.complete_multipart_upload(
                    **upload, MultipartUpload={"Parts": parts}, IfNoneMatch="*"
                ),
            )
        finally:
            if answer != "stored":
                # The store charges for the parts of an upload that nobody aborts. It may be gone.
                with suppress(OSError), _as_os_error(key):
                    client.abort_multipart_upload(**upload)
        return answer

    def _is(self, key: str, data: bytes) -> bool:
        try:
            return self.get(key) == data
        except FileNotFoundError:
            message = f"{key}: it was refused as one that exists, and does not"
            raise ObjectStoreError(message) from None

    def _key(self, key: str) -> str:
        parts = PurePosixPath(key).parts
        if not parts or key != "/".join(parts) or any(part in {"/", ".."} for part in parts):
            message = f"{key!r} is no key"
            raise ValueError(message)
        return self.location.prefix + key

    def _client(self) -> BaseClient:
        """A client with the keys that the file has now."""
        file = self.location.key_file
        with self._lock:
            stamp = None
            if file is not None:
                status = file.stat()
                stamp = (status.st_mtime_ns, status.st_ino)
            if self._opened is None or self._opened[0] != stamp:
                self._opened = (stamp, _connect(self.location))
            return self._opened[1]


def _connect(location: S3Location) -> BaseClient:
    session = botocore.session.Session()
    keys = {}
    if location.key_file is not None:
        session.set_config_variable("credentials_file", str(location.key_file))
        session.set_config_variable("profile", None)
        provider = session.get_component("credential_provider").get_provider(
            "shared-credentials-file"
        )
        credentials = provider.load()
        if credentials is None:
            message = f"{location.key_file}: no keys of AWS under [default]"
            raise ObjectStoreError(message)
        keys = {
            "aws_access_key_id": credentials.access_key,
            "aws_secret_access_key": credentials.secret_key,
            "aws_session_token": credentials.token,
        }
    return session.create_client(
        "s3",
        region_name=location.region or session.get_config_variable("region") or REGION,
        endpoint_url=location.endpoint,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            max_pool_connections=CONNECTIONS,
            # Stores other than AWS know neither buckets in the host's name nor its new checksums.
            s3={"addressing_style": "path" if location.endpoint else "auto"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
        **keys,
    )


def _outcome(key: str, send: Any) -> str:  # noqa: ANN401 (botocore's)
    """Makes a conditional write; returns `stored`, `taken`, `conflict`, or `unclear`.

    It is unclear where the request was sent more than once: the object that exists may be the one
    that the first request stored, whose answer was lost.
    """
    with _as_os_error(key):
        try:
            send()
        except ClientError as error:
            code = error.response["Error"]["Code"]
            facts = error.response["ResponseMetadata"]
            if code == "ConditionalRequestConflict":
                return "conflict"
            if code == "NoSuchUpload" and facts.get("RetryAttempts"):
                return "unclear"
            if code == "PreconditionFailed" or facts["HTTPStatusCode"] == 412:
                return "unclear" if facts.get("RetryAttempts") else "taken"
            raise
    return "stored"


@contextmanager
def _as_os_error(what: str) -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        code = error.response["Error"]["Code"]
        if code in {"NoSuchKey", "404"}:
            raise FileNotFoundError(what) from error
        if status in {401, 403}:
            message = f"{what}: the object store refuses: {code}"
            raise PermissionError(message) from error
        message = f"{what}: {error}"
        raise ObjectStoreError(message) from error
    except (BotoCoreError, HTTPClientError) as error:
        message = f"{what}: {error}"
        raise ObjectStoreError(message) from error
