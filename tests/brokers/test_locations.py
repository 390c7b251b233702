"""Locations of metadata and objects: what they name, and what is refused."""

from pathlib import Path

import pytest

from brokers.errors import ConfigError
from brokers.etcd import range_end
from brokers.locations import (
    EtcdLocation,
    S3Location,
    absolute,
    for_cluster,
    local_path,
    metadata_location,
    object_location,
)


def test_an_etcd_is_named_with_all_that_it_takes():
    # As in brokers/core/crates/etcd/src/location.rs.
    text = (
        "etcds://a:1,b:2,[::1]:3/cell/one/?ca=/c&cert=/d&key=/e&server_name=f&user=u"
        "&password_file=/p"
    )
    assert metadata_location(text) == EtcdLocation(
        members=("a:1", "b:2", "[::1]:3"),
        root="cell/one/",
        tls=True,
        user="u",
        password_file=Path("/p"),
        ca=Path("/c"),
        cert=Path("/d"),
        key=Path("/e"),
        server_name="f",
    )
    assert metadata_location("etcd://a:1") == EtcdLocation(members=("a:1",))


def test_a_bucket_is_named_with_all_that_it_takes():
    text = "s3://records/cell/one?endpoint=http://h:9000&region=eu-1&key_file=/etc/keys"
    assert object_location(text) == S3Location(
        bucket="records",
        prefix="cell/one/",
        endpoint="http://h:9000",
        region="eu-1",
        key_file=Path("/etc/keys"),
    )
    assert object_location("s3://records") == S3Location(bucket="records")


@pytest.mark.parametrize("text", ["/a/b", "a/b", "./etcd:"])
def test_what_has_no_scheme_is_a_path(text):
    assert metadata_location(text) == object_location(text) == local_path(text) == Path(text)
    assert absolute(text) == str(Path(text).absolute())


def test_paths_may_have_a_scheme():
    assert metadata_location("sqlite:///a/m") == local_path("sqlite:///a/m") == Path("/a/m")
    assert object_location("file:///a/b") == local_path("file:///a/b") == Path("/a/b")
    assert absolute("file:///a/b") == "/a/b"
    for remote in ("etcd://a:1", "etcds://a:1", "s3://b/p"):
        assert local_path(remote) is None
        assert absolute(remote) == remote


def test_brokers_get_the_part_of_their_cluster():
    text = "etcd://a:1/cell?user={cluster}&password_file=/run/{cluster}"
    assert for_cluster(text, "cl_1") == "etcd://a:1/cell?user=cl_1&password_file=/run/cl_1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("s3://a", "metadata lies in"),
        ("etcd://", "host:port"),
        ("etcd://a:1,", "host:port"),
        ("etcd://a:70000", "host:port"),
        ("etcd://a:1?colour=red", "no option 'colour'"),
        ("etcd://a:1?user=u", "go together"),
        ("etcds://a:1?cert=c", "go together"),
        ("etcd://a:1?ca=c", "want etcds://"),
        ("etcds://a:1?ca=", "one value"),
        ("etcds://a:1?ca=a&ca=b", "one value"),
    ],
)
def test_metadata_is_refused_with_the_reason(text, reason):
    with pytest.raises(ConfigError, match=reason):
        metadata_location(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("etcd://a:1", "objects lie in"),
        ("s3://", "no name"),
        ("s3:///p", "no name"),
        ("s3://b?colour=red", "no option 'colour'"),
        ("s3://b?region=", "one value"),
    ],
)
def test_objects_are_refused_with_the_reason(text, reason):
    with pytest.raises(ConfigError, match=reason):
        object_location(text)


def test_an_unknown_kind_of_store_is_refused():
    with pytest.raises(ConfigError, match="no such kind"):
        absolute("ftp://a/b")


def test_the_end_of_a_range_is_behind_all_that_begin_alike():
    assert range_end("a/") == b"a0"
    assert range_end("ab") == b"ac"
    assert range_end("") == b"\0"
