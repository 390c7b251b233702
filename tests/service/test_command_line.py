"""The `freshet` program itself against the whole service."""

import signal

from .program import TIMEOUT_S, signed_up


def test_records_are_seen_as_they_arrive(service, tmp_path):
    freshet = signed_up(service.address, tmp_path)
    freshet("topic", "create", "payments", "--partitions", "1")
    freshet("produce", "payments", given="one\ntwo\n")
    assert freshet("consume", "payments", "--from-beginning") == "one\ntwo\n"
    tail = freshet.start("consume", "payments", "--last", "1", "--follow")
    assert tail.stdout is not None
    lines = iter(tail.stdout)
    assert next(lines) == "two\n"
    freshet("produce", "payments", "--value", "three")
    assert next(lines) == "three\n"
    tail.send_signal(signal.SIGINT)
    out, err = tail.communicate(timeout=TIMEOUT_S)
    assert (tail.returncode, out, err) == (130, "", "\n")

    slept = freshet.json("cluster", "sleep", "orders", "--wait")
    assert slept["state"] == "succeeded"
    assert [item["name"] for item in freshet.json("topic", "list")["items"]] == ["payments"]
    freshet("consume", "payments", "-b", code=5)
    assert freshet("consume", "payments", "-b", "--wake") == "one\ntwo\nthree\n"
    freshet("cluster", "suspend", "orders")
    freshet("logout")
    freshet("topic", "list", code=2)
    freshet("cluster", "list", code=3)
