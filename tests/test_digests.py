"""A digest tells files apart by their names and by their contents."""

from tests.digests import digest_of


def test_the_digest_is_of_names_and_contents(tmp_path):
    one, other = tmp_path / "a", tmp_path / "b"
    one.write_text("1")
    first = digest_of(tmp_path, {one})
    one.write_text("2")
    assert digest_of(tmp_path, {one}) != first
    one.rename(other)
    other.write_text("1")
    assert digest_of(tmp_path, {other}) != first
