"""The S3 server of the tests keeps the promises of S3 that Freshet relies on."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError

from tests.s3 import running_s3

pytestmark = pytest.mark.full("stores")

WRITERS = 12
ROUNDS = 6


@pytest.fixture
def bucket(s3_server):
    return s3_server.make_bucket().partition("?")[0].removeprefix("s3://")


def race(attempt):
    """What `attempt(i)` of each writer gave, all begun at once: "won", or the error's code."""
    begin = threading.Barrier(WRITERS)

    def run(i):
        begin.wait()
        try:
            attempt(i)
        except ClientError as error:
            return error.response["Error"]["Code"]
        return "won"

    with ThreadPoolExecutor(WRITERS) as pool:
        return list(pool.map(run, range(WRITERS)))


def winner(outcomes):
    assert sorted(set(outcomes)) == ["PreconditionFailed", "won"]
    assert outcomes.count("won") == 1
    return outcomes.index("won")


def body_of(client, bucket, key):
    return client.get_object(Bucket=bucket, Key=key)["Body"].read()


def bodies(size):
    return [b"%03d" % i * size for i in range(WRITERS)]


def test_one_of_racing_creations_wins(s3_server, bucket):
    client = s3_server.client()
    for number in range(ROUNDS):
        key, texts = f"new/{number}", bodies([10, 40_000][number % 2])
        outcomes = race(
            lambda i, key=key, texts=texts: client.put_object(
                Bucket=bucket, Key=key, Body=texts[i], IfNoneMatch="*"
            )
        )
        assert body_of(client, bucket, key) == texts[winner(outcomes)]


def test_one_of_racing_replacements_wins(s3_server, bucket):
    client = s3_server.client()
    for number in range(ROUNDS):
        first = client.put_object(Bucket=bucket, Key="cas", Body=b"round %d" % number)
        texts = bodies([10, 40_000][number % 2])
        outcomes = race(
            lambda i, texts=texts, etag=first["ETag"]: client.put_object(
                Bucket=bucket, Key="cas", Body=texts[i], IfMatch=etag
            )
        )
        assert body_of(client, bucket, "cas") == texts[winner(outcomes)]


def test_one_of_racing_multipart_uploads_wins(s3_server, bucket):
    client = s3_server.client()
    texts = [b"%03d" % i for i in range(WRITERS)]

    def upload(i):
        made = client.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
        part = client.upload_part(
            Bucket=bucket, Key="large", UploadId=made, PartNumber=1, Body=texts[i]
        )
        return made, [{"PartNumber": 1, "ETag": part["ETag"]}]

    uploads = [upload(i) for i in range(WRITERS)]
    outcomes = race(
        lambda i: client.complete_multipart_upload(
            Bucket=bucket,
            Key="large",
            UploadId=uploads[i][0],
            MultipartUpload={"Parts": uploads[i][1]},
            IfNoneMatch="*",
        )
    )
    assert body_of(client, bucket, "large") == texts[winner(outcomes)]


def test_more_requests_than_allowed_get_slow_down(tmp_path):
    with running_s3(tmp_path, requests=1) as server:
        server.make_bucket("narrow")
        client = server.client()

        def write(i):
            for number in range(ROUNDS):
                client.put_object(Bucket="narrow", Key=f"{i}/{number}", Body=b"x" * 100_000)

        outcomes = race(write)
        assert "SlowDown" in outcomes
        assert set(outcomes) <= {"SlowDown", "won"}


def test_what_it_keeps_outlives_it(tmp_path):
    with running_s3(tmp_path) as server:
        server.make_bucket("kept")
        server.client().put_object(Bucket="kept", Key="a/b", Body=b"kept")
        server.stop()
        server.start()
        assert body_of(server.client(), "kept", "a/b") == b"kept"
