"""The cache of clients."""

import threading

import pytest

from provisioning.kafka import Access, Clients, Connection, RefusedError, UnavailableError

HERE = Connection("127.0.0.1:9", "secret")
THERE = Connection("127.0.0.1:9", "other")


class Clock:
    """Seconds that pass when told to."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def cache(clock):
    clients = Clients(idle_s=60.0, kept_max=3, clock=clock)
    yield clients
    clients.close()


def test_admin_and_producer_are_shared_and_kept(cache):
    with cache.admin(HERE) as one, cache.admin(HERE) as two, cache.producer(HERE) as producer:
        assert one is two
        assert producer is not one
    with cache.admin(HERE) as again, cache.admin(THERE) as other:
        assert again is one
        assert other is not one


def test_a_consumer_has_one_borrower(cache):
    with cache.consumer(HERE) as one, cache.consumer(HERE) as two:
        assert one is not two
    with cache.consumer(HERE) as again, cache.consumer(HERE, "read_uncommitted") as other:
        assert again in (one, two)
        assert other not in (one, two)


def test_the_longest_idle_goes_when_there_are_too_many(cache, clock):
    connections = [Connection("127.0.0.1:9", str(n)) for n in range(4)]
    firsts = []
    for connection in connections:
        clock.now_s += 1
        with cache.admin(connection) as client:
            firsts.append(client)
    assert len(cache) == 3
    with cache.admin(connections[1]) as kept, cache.admin(connections[0]) as anew:
        assert kept is firsts[1]
        assert anew is not firsts[0]


def test_what_is_idle_too_long_is_closed(clock):
    cache = Clients(idle_s=60.0, clock=clock)
    with cache.consumer(HERE) as consumer, cache.admin(HERE):
        janitor = cache._janitor
        clock.now_s = 1_000.0
    clock.now_s = 1_059.0
    assert len(cache) == 2
    clock.now_s = 1_061.0
    with cache._changed:
        cache._changed.notify_all()
    assert janitor is not None
    janitor.join(30)
    assert not janitor.is_alive()
    assert len(cache) == 0
    with pytest.raises(RuntimeError, match="closed"):
        consumer.poll(0)
    # And it begins anew.
    with cache.admin(HERE):
        assert cache._janitor is not janitor
    cache.close()


def test_a_lent_client_outlives_everything(cache, clock):
    with cache.consumer(HERE) as consumer:
        clock.now_s = 1_000.0
        cache.close()
        assert consumer.poll(0) is None


def test_a_client_that_failed_is_not_lent_again(cache):
    with pytest.raises(UnavailableError), cache.admin(HERE) as failed:
        raise UnavailableError("_TIMED_OUT", "nobody answered")
    with pytest.raises(RefusedError), cache.admin(HERE) as refused:
        raise RefusedError("INVALID_REQUEST", "no")
    assert refused is not failed
    with cache.admin(HERE) as client:
        assert client is refused
    with pytest.raises(RefusedError), cache.consumer(HERE) as consumer:
        raise RefusedError("INVALID_REQUEST", "no")
    with cache.consumer(HERE) as other:
        assert other is not consumer


def test_threads_share_without_harm(cache):
    failures = []

    def use():
        try:
            for _ in range(50):
                with cache.consumer(HERE), cache.admin(HERE), cache.admin(THERE):
                    pass
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(cache) <= 3


def test_a_password_is_not_shown():
    assert "secret" not in repr(Access(Clients(), HERE))
