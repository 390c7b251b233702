"""The files in which samples of a cell's clusters travel from its keeper to the control plane.

They lie in the cell's object store, in a folder for each hour: `samples/<day>/<hour>/<emitted
ms>-<term>.jsonl.gz`. A file is lines of JSON, compressed by gzip:

- first `{"v": 1, "emitted_at_ms": …, "term": …, "whole": …}`. A keeper has a greater term than all
  keepers before it. A whole file has every cluster that runs, another one those that changed;
- `{"cluster": …, "taken_at_ms": …, "content": {…}}`: a sample, with the groups and the counters of
  topics as `samples.py` describes them, and the number of clients' `connections`;
- `{"same": {<cluster>: <taken at ms>, …}}`: clusters that were looked at again and had not changed.

Readers pass over lines and files of other kinds: a later release may write some. Names in a content
are the tenant's and may hold anything.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import orjson

PREFIX = "samples/"
FORMAT = 1
HOUR_MS = 3_600_000
# The most bytes of a sample's content; a line has a little more.
CONTENT_BYTES_MAX = 700 * 1024
LINE_BYTES_MAX = CONTENT_BYTES_MAX + 4096
# The keeper begins another file once one has this many bytes before compression.
FILE_BYTES_FULL = 8 * 1024 * 1024
# A reader takes no more than this of a file, before and after it is decompressed.
FILE_BYTES_MAX = 16 * 1024 * 1024
COMPRESSION_LEVEL = 3
NUMBER_MAX = 2**53
_KEY = re.compile(
    r"samples/(?P<day>\d{4}-\d{2}-\d{2})/(?P<hour>\d{2})/"
    r"(?P<emitted>\d{13})-(?P<term>\d{13})\.jsonl\.gz"
)


class SampleFileError(ValueError):
    """A file that is damaged, or of a newer format."""


@dataclass(frozen=True, slots=True)
class SampleFileKey:
    """The parts of a file's key: when it was written, and the term of the keeper that did."""

    emitted_at_ms: int
    term: int


@dataclass(frozen=True, slots=True)
class TakenSample:
    """A sample of a cluster as it was at `taken_at_ms` (Unix ms)."""

    cluster_id: str
    taken_at_ms: int
    content: Mapping[str, Any]


@dataclass(slots=True)
class SampleFileContent:
    """What a file says. `damaged` counts the lines that could not be read."""

    term: int
    emitted_at_ms: int
    whole: bool
    samples: list[TakenSample] = field(default_factory=list)
    # When clusters that had not changed were looked at (Unix ms).
    same: dict[str, int] = field(default_factory=dict)
    damaged: int = 0


def hour_prefix(at_ms: int) -> str:
    """The prefix of the keys of all files that were written in the hour of a time (Unix ms)."""
    return f"{PREFIX}{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d/%H}/"


def file_key(emitted_at_ms: int, term: int) -> str:
    """The key of a file. Keys sort in the order of `emitted_at_ms`."""
    return f"{hour_prefix(emitted_at_ms)}{emitted_at_ms:013d}-{term:013d}.jsonl.gz"


def parse_key(key: str) -> SampleFileKey | None:
    """The parts of a key; None where it is none of a file of samples."""
    match = _KEY.fullmatch(key)
    if match is None:
        return None
    emitted_at_ms = int(match["emitted"])
    if not key.startswith(hour_prefix(emitted_at_ms)):
        return None
    return SampleFileKey(emitted_at_ms, int(match["term"]))


def sample_line(cluster_id: str, taken_at_ms: int, content: bytes) -> bytes:
    """The line of a sample whose content is JSON already."""
    named = orjson.dumps({"cluster": cluster_id, "taken_at_ms": taken_at_ms})
    return b'%s,"content":%s}' % (named[:-1], content)


def encode_file(
    lines: Iterable[bytes],
    same: Mapping[str, int],
    *,
    emitted_at_ms: int,
    term: int,
    whole: bool,
) -> bytes:
    """A file of these samples' lines."""
    first = {"v": FORMAT, "emitted_at_ms": emitted_at_ms, "term": term, "whole": whole}
    parts = [orjson.dumps(first), *lines]
    if same:
        parts.append(orjson.dumps({"same": dict(same)}))
    return gzip.compress(b"\n".join(parts) + b"\n", COMPRESSION_LEVEL, mtime=0)


def decode_file(data: bytes) -> SampleFileContent:
    """Reads a file. A line that cannot be read is counted and left out.

    Raises `SampleFileError` where the file is damaged as a whole, too large or of a newer format.
    """
    lines = _lines_of(_decompress(data))
    first = _read_line(next(lines, b""))
    if first is None or not _is_number(first.get("v")):
        message = "it does not begin with its format"
        raise SampleFileError(message)
    if first["v"] != FORMAT:
        message = f"it has the format {first['v']}, this release reads {FORMAT}"
        raise SampleFileError(message)
    if not (_is_number(first.get("term")) and _is_number(first.get("emitted_at_ms"))):
        message = "it does not say who wrote it and when"
        raise SampleFileError(message)
    file = SampleFileContent(first["term"], first["emitted_at_ms"], bool(first.get("whole")))
    for line in lines:
        _take_line(file, _read_line(line))
    return file


def _take_line(file: SampleFileContent, line: dict[str, Any] | None) -> None:
    if line is None:
        file.damaged += 1
        return
    if "cluster" in line:
        sample = _sample_of(line)
        if sample is None:
            file.damaged += 1
        else:
            file.samples.append(sample)
    elif isinstance(line.get("same"), dict):
        file.same |= {name: at for name, at in line["same"].items() if _is_number(at)}


def _sample_of(line: Mapping[str, Any]) -> TakenSample | None:
    cluster_id, taken_at_ms, content = line["cluster"], line.get("taken_at_ms"), line.get("content")
    if not isinstance(cluster_id, str) or not _is_number(taken_at_ms):
        return None
    if not isinstance(content, dict) or not _is_content(content):
        return None
    return TakenSample(cluster_id, int(taken_at_ms or 0), content)


def _is_content(content: Mapping[str, Any]) -> bool:
    groups, topics = content.get("groups", []), content.get("topics", {})
    return (
        isinstance(groups, list)
        and all(isinstance(group, dict) and isinstance(group.get("group"), str) for group in groups)
        and isinstance(topics, dict)
        and all(_is_counts(counts) for counts in topics.values())
        and _is_number(content.get("connections", 0))
    )


def _is_counts(counts: object) -> bool:
    return isinstance(counts, list) and all(_is_number(count) for count in counts)


def _is_number(value: object) -> bool:
    return type(value) is int and 0 <= value < NUMBER_MAX


def _read_line(line: bytes) -> dict[str, Any] | None:
    if len(line) > LINE_BYTES_MAX:
        return None
    try:
        parsed = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _lines_of(text: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(text):
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _decompress(data: bytes) -> bytes:
    """Raises `SampleFileError`, also above `FILE_BYTES_MAX`, of which no more is decompressed."""
    reader = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = reader.decompress(data, FILE_BYTES_MAX)
    except zlib.error as error:
        raise SampleFileError(str(error)) from error
    if reader.unconsumed_tail or len(text) >= FILE_BYTES_MAX:
        message = f"it has more than {FILE_BYTES_MAX} bytes"
        raise SampleFileError(message)
    if not reader.eof:
        message = "it is cut off"
        raise SampleFileError(message)
    return text
