"""The proof's decoder refuses what is not whole: a wrong figure must not come of a wrong frame."""

from __future__ import annotations

import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metering.proof import frames

TOPIC = "weighed"
TOPIC_ID = uuid.UUID(int=7)


def batch(size):
    return struct.pack(">qiib", 0, 5 + size, -1, 2) + bytes(size)


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def fetch_response(version, batches):
    """One topic, one partition; written by `FetchResponse.json`, apart from the decoder."""
    flexible = version >= 12
    tags = b"\0" if flexible else b""
    one = b"\2" if flexible else struct.pack(">i", 1)
    records = b"".join(batches)
    frame = struct.pack(">i", 99) + tags + struct.pack(">i", 0)
    if version >= 7:
        frame += struct.pack(">hi", 0, 0)
    frame += one
    if version >= 13:
        frame += TOPIC_ID.bytes
    else:
        name = TOPIC.encode()
        frame += (bytes([len(name) + 1]) if flexible else struct.pack(">h", len(name))) + name
    frame += one + struct.pack(">ihqq", 3, 0, 10, 10)
    if version >= 5:
        frame += struct.pack(">q", 0)
    frame += b"\0" if flexible else struct.pack(">i", -1)
    if version >= 11:
        frame += struct.pack(">i", -1)
    frame += varint(len(records) + 1) if flexible else struct.pack(">i", len(records))
    return frame + records + 3 * tags


versions = st.sampled_from(list(frames.FETCH_VERSIONS))
sizes = st.lists(st.integers(44, 300), min_size=1, max_size=4)


@given(versions, sizes)
def test_whole_batches_are_weighed(version, sizes):
    batches = [batch(size) for size in sizes]
    topic = TOPIC_ID if version >= frames.TOPIC_IDS else TOPIC
    due = [frames.Part(topic, 3, 0, sum(map(len, batches)))]
    assert frames.parse_fetch_response(fetch_response(version, batches), version) == due


@given(versions, sizes, st.data())
def test_a_frame_that_is_cut_or_too_long_is_refused(version, sizes, data):
    frame = fetch_response(version, [batch(size) for size in sizes])
    cut = data.draw(st.integers(4, len(frame) - 1))
    with pytest.raises(frames.FrameError):
        frames.parse_fetch_response(frame[:cut], version)
    with pytest.raises(frames.FrameError):
        frames.parse_fetch_response(frame + b"\0", version)


@given(versions, sizes)
def test_a_cut_batch_is_refused(version, sizes):
    batches = [batch(size) for size in sizes]
    with pytest.raises(frames.FrameError):
        frames.parse_fetch_response(fetch_response(version, [*batches, batches[-1][:-1]]), version)


def test_versions_that_nobody_read_the_description_of_are_refused():
    for version in (3, 19):
        with pytest.raises(frames.FrameError):
            frames.parse_fetch_response(b"", version)


def test_users_are_known_by_their_first_words():
    def said(token):
        body = struct.pack(">i", len(token)) + token
        return struct.pack(">hhih", frames.SASL_AUTHENTICATE, 1, 5, -1) + body

    assert frames.user_name(said(b"n,,n=al=2Cice,r=abc"), 1, "SCRAM-SHA-256") == "al,ice"
    assert frames.user_name(said(b"c=biws,r=abc,p=xyz"), 1, "SCRAM-SHA-256") is None
    assert frames.user_name(said(b"\0bob\0secret"), 1, "PLAIN") == "bob"


@pytest.mark.parametrize(
    ("api", "version", "payer"),
    [(0, 8, None), (0, 9, "ApiKey:key_a"), (1, 11, None), (1, 12, "ApiKey:key_a"), (3, 12, None)],
)
def test_who_pays_is_read_where_a_header_has_a_place_for_it(api, version, payer):
    head = struct.pack(">hhih", api, version, 1, 2) + b"me"
    field = varint(frames.PAYER_TAG) + varint(12) + b"ApiKey:key_a"
    tagged = head + varint(2) + varint(3) + varint(1) + b"x" + field
    frame = tagged if payer else head
    assert frames.payer_of(frame, frames.RequestHead.of(frame)) == payer
    if payer:
        with pytest.raises(frames.FrameError):
            frames.payer_of(frame[:-1], frames.RequestHead.of(frame))
        assert frames.payer_of(head + b"\0", frames.RequestHead.of(head)) is None
