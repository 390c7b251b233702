"""Records that compress as a service's events do, the same for every side, codec and generator.

A record is one event of a shop as a line of JSON: names and texts that come again in other records,
words of a small vocabulary, and identifiers, numbers and a signature that no two records share. How
large the last part is decides how well a batch compresses. Its size was chosen by trying, so that
batches of a hundred records and more shrink to a third by lz4 and to a fifth by zstd, as events and
logs of services do; a batch of a few records shrinks less. Everything is drawn from one seed, so
that each run and each machine has the same bytes.

Generators read the records from a file, or take whole batches of them that are compressed already:
both are made before a clock starts. The records are so many that a batch hardly has one twice.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from tests.bench.codec import NAMES
from tests.brokers import raw_batches
from tests.peer.jars import ROOT

BUILD = ROOT / ".bench" / "build"

RECORDS = 32_000
RECORDS_A_BATCH = 1_000
SEED = 20_261_126
FIRST_MS = 1_790_000_000_000
STEP_MS_MAX = 40

KINDS = ("product_viewed", "cart_changed", "order_placed", "payment_taken", "parcel_sent")
COUNTRIES = ("DE", "FR", "NL", "PL", "ES", "IT", "SE", "US", "BR", "IN", "JP")
CURRENCIES = ("EUR", "PLN", "SEK", "USD", "BRL", "INR", "JPY")
AGENTS = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/141.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_7) AppleWebKit/605.1 Version/18.1 Safari/605.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:144.0) Gecko/20100101 Firefox/144.0",
    "ShopApp/7.3.1 (Android 15; Pixel 8)",
    "ShopApp/7.2.0 (iOS 18.1; iPhone15,3)",
)
COLORS = ("blue", "green", "red", "white", "black", "grey", "oak", "steel")
MATERIALS = ("cotton", "wool", "leather", "glass", "bamboo", "linen", "paper", "copper")
THINGS = ("shirt", "kettle", "chair", "lamp", "scarf", "bag", "bottle", "helmet", "tent", "mug")
NOTES = (
    "The customer asked for a delivery in the afternoon, after four. ",
    "Packed as a gift, with a card and without prices on the slip. ",
    "The parcel may be left with the neighbor on the ground floor. ",
    "Stock was taken from the second warehouse, as the first had none. ",
    "The address was completed by the postal service before it was used. ",
    "A voucher from the spring mailing was applied to the first item. ",
    "The recommendation came from what others bought together with it. ",
    "Reviewed by the fraud rules of version twelve: nothing to object. ",
)


def _token(chance: random.Random, size: int) -> str:
    """Random bytes as the text that identifiers and signatures are written as."""
    return base64.urlsafe_b64encode(chance.randbytes(size)).decode()


def _item(chance: random.Random) -> dict[str, object]:
    return {
        "sku": f"{chance.choice('ABCDEFGH')}{chance.randrange(10**6):06}",
        "name": " ".join(chance.choice(words) for words in (COLORS, MATERIALS, THINGS)),
        "quantity": chance.choice((1, 1, 1, 2, 3)),
        "price_cents": 5 * chance.randrange(40, 4000),
    }


def _event(chance: random.Random, number: int, moment_ms: int) -> dict[str, object]:
    page = f"{chance.choice(THINGS)}/{chance.choice(COLORS)}?page={chance.randrange(9)}"
    return {
        "event": chance.choice(KINDS),
        "event_id": _token(chance, 16),
        "time_ms": moment_ms,
        "sequence": number,
        "session": _token(chance, 12),
        "customer": {
            "id": chance.randrange(10**6),
            "country": chance.choice(COUNTRIES),
            "returning": chance.random() < 0.6,
        },
        "request": {
            "path": f"/shop/{page}",
            "address": ".".join(str(number) for number in (10, *chance.randbytes(3))),
            "user_agent": chance.choice(AGENTS),
            "duration_us": int(chance.lognormvariate(9, 1)),
            "trace_id": _token(chance, 12),
        },
        "signature": _token(chance, 60),
        "currency": chance.choice(CURRENCIES),
        "items": [_item(chance) for _ in range(chance.choice((1, 2, 2, 3)))],
    }


def records_of(size: int, count: int) -> Iterator[bytes]:
    """So many records of `size` bytes: JSON without a line break, filled up with a note.

    Raises `ValueError` if an event is larger than that.
    """
    chance = random.Random(SEED)
    moment_ms = FIRST_MS
    for number in range(count):
        moment_ms += chance.randrange(STEP_MS_MAX)
        event = _event(chance, number, moment_ms)
        text = json.dumps(event | {"note": ""}, separators=(",", ":"))
        note, missing = "", size - len(text)
        if missing < 0:
            message = f"an event has {len(text)} bytes, more than {size}"
            raise ValueError(message)
        while len(note) < missing:
            note += chance.choice(NOTES)
        yield (text[:-2] + note[:missing] + '"}').encode()


def record_file(size: int) -> Path:
    """A file of the records, each with a line break after it. It is made once, and kept."""
    lines = (record + b"\n" for record in records_of(size, RECORDS))
    return _kept_file(f"records-{size}", lines)


def batch_file(codec: str, size: int) -> Path:
    """A file of batches of the records under a codec, each after its length in four bytes.

    Timestamps and the producer are left to whoever sends them.
    """
    return _kept_file(f"batches-{codec}-{size}", _batches(codec, size))


def _batches(codec: str, size: int) -> Iterator[bytes]:
    left = records_of(size, RECORDS)
    while values := list(islice(left, RECORDS_A_BATCH)):
        number = NAMES.index(codec)
        payload = raw_batches.compressed[number](raw_batches.records(values))
        batch = raw_batches.batch(payload, len(values), codec=number)
        yield struct.pack(">I", len(batch)) + batch


def _kept_file(name: str, parts: Iterable[bytes]) -> Path:
    """A file of these parts, unless this version of the code has made it already."""
    sources = (Path(__file__), Path(raw_batches.__file__))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:12]
    file = BUILD / f"{name}-{digest}"
    if not file.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(f".{os.getpid()}")
        with partial.open("wb") as output:
            output.writelines(parts)
        partial.rename(file)
    return file
