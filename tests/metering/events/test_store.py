"""What every usage store does, in a folder and in a bucket, and manifests with their files."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from metering.events.errors import UsageFormatError
from metering.events.keys import data_key, manifest_key
from metering.events.manifests import UsageManifest, encode_manifest
from metering.events.store import FolderUsageStore, list_manifests, read_manifest
from metering.events.times import DAY_MS
from metering.stores import open_usage_store

AT = 1_800_000_000_000


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.full("stores"))])
def store(request, tmp_path):
    if request.param == "folder":
        return open_usage_store(f"file://{tmp_path}/usage")
    server = request.getfixturevalue("s3_server")
    return open_usage_store(server.make_bucket().replace("?", "/usage?"))


@pytest.fixture
def folder(tmp_path):
    return FolderUsageStore(tmp_path / "usage")


def emit(store, emitted_at_ms, data):
    digest = hashlib.sha256(data).hexdigest()
    key = data_key("local", emitted_at_ms, digest)
    manifest = UsageManifest(
        cell="local",
        key=key,
        size_bytes=len(data),
        sha256=digest,
        rows=0,
        window_start_ms=0,
        window_end_ms=0,
        emitted_at_ms=emitted_at_ms,
        agent="a",
    )
    store.put_new(key, data)
    store.put_new(manifest_key(key), encode_manifest(manifest))
    return manifest


def test_the_first_stays(store):
    assert store.put_new("a/b", b"1") is True
    assert store.put_new("a/b", b"2") is False
    assert store.get("a/b") == b"1"


def test_of_many_one_wins(store):
    with ThreadPoolExecutor(8) as pool:
        wins = list(pool.map(lambda n: store.put_new("k", bytes([n])), range(32)))
    assert wins.count(True) == 1
    assert store.get("k") == bytes([wins.index(True)])
    assert list(store.list("")) == ["k"]


def test_an_unfinished_object_is_none(folder):
    folder.put_new("a/b", b"1")
    assert list((folder.root / ".unfinished").iterdir()) == []
    (folder.root / ".unfinished" / "1-x").write_bytes(b"half")
    assert list(folder.list("")) == ["a/b"]


def test_what_is_missing_is_said(store):
    with pytest.raises(FileNotFoundError):
        store.get("a")
    assert list(store.list("v1/")) == []


@pytest.mark.parametrize("key", ["", "/a", "../a", "a/../b", "a//b", ".unfinished/a", "a/"])
def test_no_key_leads_out_of_the_store(folder, key):
    with pytest.raises(UsageFormatError):
        folder.put_new(key, b"")


def test_parts_are_read(store):
    store.put_new("a/b", bytes(range(200)))
    assert store.read_part("a/b", 10, 3) == bytes([10, 11, 12])
    assert store.read_part("a/b", 198, 5) == bytes([198, 199])
    assert store.read_end("a/b", 2) == (bytes([198, 199]), 200)
    assert store.read_end("a/b", 500) == (bytes(range(200)), 200)
    for read in (lambda: store.read_part("a/c", 0, 1), lambda: store.read_end("a/c", 1)):
        with pytest.raises(FileNotFoundError):
            read()


def test_keys_are_listed_by_prefix_in_order(store):
    keys = ["a-1", "a/1", "a/10", "a/2", "a/b/c", "ab", "b"]
    for key in reversed(keys):
        store.put_new(key, b"")
    assert list(store.list("")) == sorted(keys)
    assert list(store.list("a")) == [key for key in sorted(keys) if key.startswith("a")]
    assert list(store.list("a/1")) == ["a/1", "a/10"]
    assert list(store.list("a/")) == ["a/1", "a/10", "a/2", "a/b/c"]


def test_manifests_are_listed_by_time_of_emission(store):
    at = [AT, AT + 5, AT + DAY_MS, AT + 2 * DAY_MS]
    keys = [manifest_key(emit(store, emitted_at_ms, b"x").key) for emitted_at_ms in at]
    assert list(list_manifests(store, "local", since_ms=0 + AT, until_ms=AT + DAY_MS)) == keys[:2]
    assert list(list_manifests(store, "local", since_ms=AT + 1, until_ms=at[-1])) == keys[1:3]
    assert list(list_manifests(store, "other", since_ms=AT, until_ms=at[-1] + 1)) == []


def test_a_manifest_counts_only_with_its_file(folder):
    manifest = emit(folder, AT, b"rows")
    key = manifest_key(manifest.key)
    assert read_manifest(folder, key, verify=True) == manifest
    path = folder.root / manifest.key
    path.write_bytes(b"rowz")
    assert read_manifest(folder, key, verify=False) == manifest
    with pytest.raises(UsageFormatError):
        read_manifest(folder, key, verify=True)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read_manifest(folder, key, verify=True)


def test_what_is_below_a_prefix_is_removed_and_nothing_else(store):
    keys = ["a/1", "a/10", "a/b/c", "ab", "b/1"]
    for key in keys:
        store.put_new(key, b"")
    assert store.remove("a/") == 3
    assert store.remove("a/") == 0
    assert list(store.list("")) == ["ab", "b/1"]
    assert store.remove("b/1") == 1
    assert list(store.list("")) == ["ab"]
    assert store.put_new("a/1", b"again")
