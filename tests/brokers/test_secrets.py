"""The cell's secret: made once, private, and the derivations that every side must agree on."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.errors import ConfigError
from brokers.secrets import (
    create_cell_secret,
    is_private,
    link_secret,
    metadata_password,
    read_cell_secret,
    super_password,
)

SECRET = bytes(range(32))


def test_derivations_are_what_the_gateway_derives():
    # Computed with `openssl dgst -sha256 -mac HMAC -macopt hexkey:000102…1f`.
    assert super_password(SECRET, "cl_example") == SUPER
    assert link_secret(SECRET, "cl_example") == LINK


SUPER = "c93f894e90272887da95cda9c1c0eed4354607be420f6288cbdf28855373a535"
LINK = "63e8f04882e3b5b54fbfef41a4ad84a77f7fbdae2e98a9a29020520f91a074c9"


@given(st.from_regex(r"cl_[a-z2-7]{20}", fullmatch=True), st.binary(min_size=32, max_size=32))
def test_purposes_and_clusters_never_share_a_secret(cluster, secret):
    derived = {
        super_password(secret, cluster),
        link_secret(secret, cluster),
        super_password(secret, cluster + "a"),
        link_secret(secret, cluster + "a"),
        secret.hex(),
    }
    assert len(derived) == 5


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_secret_of_another_length_derives_nothing(length):
    with pytest.raises(ConfigError, match="32 bytes"):
        link_secret(bytes(length), "cl_a")


def test_a_secret_is_made_private_and_kept(tmp_path):
    path = tmp_path / "secret"
    made = create_cell_secret(path)
    assert len(made) == 32
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == made.hex() + "\n"
    before = path.stat()
    assert create_cell_secret(path) == read_cell_secret(path) == made
    assert path.stat().st_ino == before.st_ino
    assert [p.name for p in tmp_path.iterdir()] == ["secret"]


def test_many_that_make_it_at_a_time_get_one_secret(tmp_path):
    with ThreadPoolExecutor(16) as pool:
        made = set(pool.map(create_cell_secret, [tmp_path / "secret"] * 64))
    assert len(made) == 1
    assert [p.name for p in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("text", ["", "ab" * 31, "ab" * 33, "xy" * 32, "ä" * 64, "ab " * 32])
def test_anything_else_is_refused_and_neither_shown_nor_overwritten(tmp_path, text):
    path = tmp_path / "secret"
    path.write_text(text)
    path.chmod(0o600)
    for call in (read_cell_secret, create_cell_secret):
        with pytest.raises(ConfigError, match="not a cell's secret") as caught:
            call(path)
        assert str(path) in str(caught.value)
        assert not text or text not in str(caught.value)
    assert path.read_text() == text


def test_a_secret_open_to_others_is_refused(tmp_path):
    path = tmp_path / "secret"
    create_cell_secret(path)
    for mode in (0o604, 0o660, 0o620):
        path.chmod(mode)
        with pytest.raises(ConfigError, match=f"{mode:04o}"):
            read_cell_secret(path)


@pytest.mark.parametrize(
    ("mode", "owner", "private"),
    [
        (0o600, 10001, True),
        (0o400, 0, True),
        (0o440, 0, True),  # as Kubernetes mounts a secret with fsGroup
        (0o640, 0, True),
        (0o640, 10001, False),
        (0o660, 0, False),
        (0o444, 0, False),
    ],
)
def test_a_group_may_read_what_is_roots(mode, owner, private):
    assert is_private(0o100000 | mode, owner) is private


def test_a_missing_secret_is_named(tmp_path):
    with pytest.raises(ConfigError, match="secret: No such file"):
        read_cell_secret(tmp_path / "secret")


def test_a_metadata_password_is_of_one_cluster_of_one_cell():
    passwords = {metadata_password(bytes([n]) * 32, name) for n in range(2) for name in ("a", "b")}
    assert len(passwords) == 4
