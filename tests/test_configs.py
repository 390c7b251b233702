"""A config that is reported as acting has a reader, and one that has a reader is reported so."""

import pytest

from tests import configs
from tests.checkout import texts_of
from tests.imports import ROOT


@pytest.fixture(scope="module")
def texts():
    return texts_of(ROOT)


def test_the_tables_are_read_whole(texts):
    effects = configs.acting(texts)
    assert len(effects) >= 33 + 43
    assert all(effects[name] for name in ("retention.ms", "log.retention.ms", "num.partitions"))
    assert not any(effects[name] for name in ("segment.bytes", "group.consumer.assignors"))


def test_every_config_says_whether_it_acts(texts):
    read = configs.readers(texts)
    wrong = [
        f"{name} {'acts' if acts else 'does not act'}, they say; readers: {read.get(name)}"
        for name, acts in sorted(configs.acting(texts).items())
        if acts != (name in read)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_field_of_a_config_has_a_reader(texts):
    assert not configs.unread_fields(texts)


@pytest.mark.parametrize(
    ("name", "reader", "instead"),
    [
        # The readers of a topic's config, of a broker's, and of a setting.
        ("retention.bytes", "config.retention_bytes", "None"),
        ("log.retention.bytes", "config.retention_bytes", "None"),
        ("fetch.max.bytes", "broker.config().fetch_max_bytes", "1024"),
        ("producer.id.expiration.ms", "current().producer_id_expiration_ms", "current().other"),
        ("offsets.topic.replication.factor", ".config().offsets_replication_factor", ".config().x"),
        ("connections.max.idle.ms", "from_millis(limits.idle_timeout_ms)", "ZERO"),
        ("connections.max.idle.ms", ".idle_time", ".other"),
        ("group.max.size", "section.members_max", "10"),
    ],
)
def test_a_config_whose_reader_goes_is_noticed(texts, name, reader, instead):
    assert name in configs.readers(texts)
    without = {path: text.replace(reader, instead) for path, text in texts.items()}
    assert name not in configs.readers(without)


def test_a_reader_in_a_test_or_a_comment_is_none(texts):
    path = configs.CRATES / "broker/src/handlers/fetch.rs"
    read = "let x = broker.config().num_partitions;"
    others = {p: t.replace(".num_partitions", ".other") for p, t in texts.items()}
    assert "num.partitions" in configs.readers(others | {path: f"{others[path]}\n{read}"})
    for hidden in (f"// {read}", f"#[cfg(test)]\nmod tests {{\n    {read}\n}}"):
        assert "num.partitions" not in configs.readers(others | {path: f"{others[path]}\n{hidden}"})
