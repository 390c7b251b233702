"""An everyday test fails, with the reason, if it asks for a server that is built from source."""

import pytest

from tests import built


@pytest.fixture
def ended():
    """Puts the note about the running test back as it was."""
    before = built._Running.everyday
    yield
    built._Running.everyday = before


def test_this_one_gets_none(request):
    with pytest.raises(AssertionError, match=r"mark .*gets_none.* pytest\.mark\.full"):
        built.built("etcd")


@pytest.mark.usefixtures("ended")
def test_a_full_one_gets_what_was_built(tmp_path, monkeypatch):
    monkeypatch.setattr(built, "FOLDER", tmp_path)
    built.begin_test("test_x", full=True)
    with pytest.raises(AssertionError, match=r"run \.ci/servers etcd"):
        built.built("etcd")
    (tmp_path / "etcd").touch()
    assert built.built("etcd") == tmp_path / "etcd"
