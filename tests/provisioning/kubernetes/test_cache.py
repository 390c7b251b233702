"""Tests the cache of the objects that the API server has."""

import threading
from contextlib import contextmanager

import pytest

from provisioning.cell.drivers.kubernetes.api import Listing, Lost
from provisioning.cell.drivers.kubernetes.cache import Cache

LIMIT_S = 60.0


class SilentWatch:
    """A watch that reports nothing until it is closed."""

    def __init__(self):
        self._closed = threading.Event()

    def __iter__(self):
        self._closed.wait()
        return iter(())

    def close(self):
        self._closed.set()


class FakeApi:
    """Lists its items. `begin` is called for each watch, and returns or raises what comes of it."""

    def __init__(self, items, version, begin):
        self._listing = Listing(items, version)
        self._begin = begin
        self.asked = threading.Semaphore(0)

    def list(self, _kind, _selector):
        return self._listing

    def watch(self, *_of_what, **_limits):
        self.asked.release()
        return self._begin()


def item(name, version):
    return {"metadata": {"namespace": "space", "name": name, "resourceVersion": str(version)}}


def never():
    message = "nobody answers"
    raise Lost(message)


def make_cache(api, stale_s):
    return Cache(api, "Pod", "", lambda _cluster_id: None, stale_s)


@contextmanager
def cached(api, stale_s):
    cache = make_cache(api, stale_s)
    cache.start()
    try:
        assert cache.wait_listed(LIMIT_S)
        yield cache
    finally:
        cache.close()


@pytest.mark.parametrize(
    ("put", "names"), [(9, ["old"]), (10, ["old"]), (11, ["new", "old"])], ids=str
)
def test_what_the_watch_has_passed_does_not_come_back(put, names):
    """The object may have ended since, and nothing would report its end again."""
    with cached(FakeApi([item("old", 8)], "10", SilentWatch), LIMIT_S) as cache:
        cache.put(item("new", put))
        assert [entry["metadata"]["name"] for entry in cache.of("space")] == names
        cache.drop("space", "old")
        assert cache.of("space") == [item("new", put)] * (put > 10)


@pytest.mark.parametrize(("stale_s", "current"), [(LIMIT_S, True), (0.0, False)], ids=str)
def test_what_was_listed_counts_for_a_while(stale_s, current):
    api = FakeApi([], "10", never)
    with cached(api, stale_s) as cache:
        for _ in range(2):
            assert api.asked.acquire(timeout=LIMIT_S)
        assert cache.current is current


def test_what_was_never_listed_is_not_current():
    assert not make_cache(FakeApi([], "10", never), LIMIT_S).current
