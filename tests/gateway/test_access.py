"""Who is let in, which reason clients get, and who is closed."""

import dataclasses

import pytest

from tests.gateway.cells import DOMAIN, PASSWORD, USER, GatewayServer, until
from tests.gateway.raw import Raw, Refused, metric

INVALID = "Authentication failed: Invalid username or password"


def port_of(spec):
    return spec.ports[0]


@pytest.mark.parametrize(
    ("user", "password"), [(USER, "wrong"), ("nobody", PASSWORD), ("__freshet", PASSWORD)]
)
def test_wrong_passwords_unknown_users_and_the_super_user_get_one_error(served, user, password):
    cell, spec, _, gateway = served
    cell.add_user(spec.id, "__freshet", PASSWORD)
    name = f'freshet_gateway_authentication_failures_total{{cluster="{spec.id}"}}'
    before = metric(gateway.ready["metrics"], name)
    client = Raw.plain(port_of(spec))
    with pytest.raises(Refused, match=f"^{INVALID}$"):
        client.log_in(user, password)
    assert client.is_closed()
    assert metric(gateway.ready["metrics"], name) == before + 1


def test_users_of_one_cluster_are_none_of_another(served):
    cell, spec, _, gateway = served
    other = cell.add_cluster("cl_other")
    cell.add_user(other.id, "olga", PASSWORD)
    authority = gateway.authority
    until(lambda: knows(gateway, f"{other.host}.{DOMAIN}"), "the gateway knows the cluster")
    Raw.tls(gateway.tls_port, f"{other.host}.{DOMAIN}", authority).log_in("olga", PASSWORD)
    with pytest.raises(Refused):
        Raw.tls(gateway.tls_port, f"{spec.host}.{DOMAIN}", authority).log_in("olga", PASSWORD)


def knows(gateway, name):
    try:
        Raw.tls(gateway.tls_port, name, gateway.authority).log_in("nobody", "x")
    except Refused:
        return True
    except (ConnectionError, AssertionError):
        return False
    return True


def test_names_that_nobody_has_are_closed(served):
    *_, gateway = served
    for name in [f"nobody.{DOMAIN}", f"b0-nobody.{DOMAIN}", DOMAIN]:
        assert Raw.tls(gateway.tls_port, name, gateway.authority).is_closed()
    assert Raw.tls(gateway.tls_port, None, gateway.authority).is_closed()


def test_removed_user_is_disconnected_and_others_stay(served):
    cell, spec, keeper, _ = served
    cell.add_user(spec.id, "removed", PASSWORD)
    removed, kept = Raw.plain(port_of(spec)), Raw.plain(port_of(spec))
    removed.log_in("removed", PASSWORD)
    kept.log_in(USER, PASSWORD)
    keeper.wait_for_start(1)
    assert removed.metadata()
    assert kept.metadata()
    cell.store.cluster(spec.id).remove_user("removed")
    # Nobody else closes it: an idle client may stay for longer than this waits.
    assert removed.is_closed()
    with pytest.raises(Refused):
        Raw.plain(port_of(spec)).log_in("removed", PASSWORD)
    assert kept.metadata()


def test_new_user_and_new_password_hold_at_once(served):
    cell, spec, *_ = served
    for password in ["first", "second"]:
        cell.add_user(spec.id, "changing", password)
        Raw.plain(port_of(spec)).log_in("changing", password)
    with pytest.raises(Refused):
        Raw.plain(port_of(spec)).log_in("changing", "first")


def test_clients_of_a_suspended_cluster_get_the_reason_and_wake_nothing(cell):
    spec = cell.add_cluster("cl_quiet", state="suspended")
    with GatewayServer(cell):
        with pytest.raises(Refused, match=r"^Authentication failed: the cluster is suspended$"):
            Raw.plain(port_of(spec)).log_in(USER, PASSWORD)
        with pytest.raises(Refused, match=f"^{INVALID}$"):
            Raw.plain(port_of(spec)).log_in(USER, "wrong")
        cell.store.put_spec(dataclasses.replace(spec, state="deleted", generation=2))
        until(lambda: refusal_of(spec).endswith("the cluster was deleted"), "the gateway knows")
    assert cell.store.wakes() == {}


def refusal_of(spec):
    try:
        Raw.plain(port_of(spec)).log_in(USER, PASSWORD)
    except Refused as refused:
        return str(refused)
    return ""


def test_a_cluster_has_so_many_connections(cell):
    spec = cell.add_cluster("cl_small", connections_max=2)
    with GatewayServer(cell):
        kept = [Raw.plain(port_of(spec)) for _ in range(2)]
        for client in kept:
            client.log_in(USER, PASSWORD)
        with pytest.raises(ConnectionError):
            Raw.plain(port_of(spec)).log_in(USER, PASSWORD)
        kept.pop().close()
        until(lambda: lets_in(spec), "a place is free")


def lets_in(spec):
    try:
        Raw.plain(port_of(spec)).log_in(USER, PASSWORD)
    except ConnectionError:
        return False
    return True
