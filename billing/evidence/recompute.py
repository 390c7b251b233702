#!/usr/bin/env python3
"""Recomputes an invoice from the usage rows and prices beside it. Needs nothing but Python 3.9.

    python3 recompute.py [FOLDER OR ZIP]

It is a program of its own on purpose: it shares no line with the service that made the invoice.
All arithmetic is in whole numbers. Exit status 0: the invoice is what its rows and prices make it;
1: it is not, and each difference is named; 2: the pack cannot be read.
"""

from __future__ import annotations

import calendar
import csv
import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

Pack = dict[str, bytes]
Rows = list[dict[str, str]]
Json = dict[str, Any]
FILES = ("invoice.json", "prices.json", "rollup_runs.json", "usage_files.json", "usage_rows.csv")
MINOR_UNITS = {"USD": 100, "EUR": 100, "JPY": 1}
GIB = 2**30


def main(arguments: list[str]) -> int:
    """Checks the pack that the arguments name, or the one in this file's folder.

    Returns the exit status.
    """
    place = Path(arguments[0]) if arguments else Path(__file__).resolve().parent
    try:
        pack = read_pack(place)
        differences = compare_pack(pack)
    except (OSError, KeyError, TypeError, ValueError, ArithmeticError, zipfile.BadZipFile) as error:
        print_line(f"The evidence pack cannot be read: {error!r}")
        return 2
    invoice = json.loads(pack["invoice.json"].decode())
    if differences:
        print_line("{} is NOT what its usage rows and prices make it:".format(invoice["number"]))
        for difference in differences:
            print_line("  " + difference)
        return 1
    lines = len(invoice["lines"])
    rows = len(list(csv.DictReader(io.StringIO(pack["usage_rows.csv"].decode()))))
    total = Fraction(invoice["total_minor"], MINOR_UNITS[invoice["currency"]])
    print_line("{} agrees: {} lines from {} usage rows.".format(invoice["number"], lines, rows))
    print_line("Total {:.2f} {}.".format(float(total), invoice["currency"]))
    print_line(f"Content SHA-256, as printed on the invoice: {content_sha256(invoice)}")
    return 0


def read_pack(place: Path) -> Pack:
    """Name -> bytes of every file in a folder or a zip file."""
    if place.is_dir():
        return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}
    with zipfile.ZipFile(place) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def compare_pack(pack: Pack) -> list[str]:
    """Every difference between the invoice and what follows from the other files of the pack."""
    invoice = json.loads(pack["invoice.json"].decode())
    prices = json.loads(pack["prices.json"].decode())
    runs = json.loads(pack["rollup_runs.json"].decode())
    rows = list(csv.DictReader(io.StringIO(pack["usage_rows.csv"].decode())))
    differences: list[str] = []
    differences += compare_hashes(pack)
    differences += compare_rows(invoice, runs, rows)
    differences += compare_lines(invoice, prices, rows)
    differences += compare_sums(invoice)
    return differences


def compare_hashes(pack: Pack) -> Iterator[str]:
    """Files that are missing, or whose hash is not the one in SHA256SUMS."""
    sums = {}
    for line in pack["SHA256SUMS"].decode().splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    for name in sorted(set(FILES) - set(sums)):
        yield f"{name} is not in SHA256SUMS"
    for name, digest in sorted(sums.items()):
        if name not in pack:
            yield f"{name} is missing"
        elif hashlib.sha256(pack[name]).hexdigest() != digest:
            yield f"{name} was changed: its hash is not that of SHA256SUMS"


def compare_rows(invoice: Json, runs: list[Json], rows: Rows) -> Iterator[str]:
    """Rows of other invoices, and runs whose rows do not sum to their control totals."""
    runs_by_id = {run["id"]: run for run in runs}
    if [run["id"] for run in runs] != invoice["usage_basis"]["runs"]:
        yield "rollup_runs.json does not have the runs that the invoice was made from"
    if len({row["id"] for row in rows}) != len(rows):
        yield "a usage row is there twice"
    sums: dict[tuple[str, str], int] = {}
    for row in rows:
        run = runs_by_id.get(row["run_id"])
        if run is None:
            yield "usage row {} is of a run that is not there".format(row["id"])
            continue
        if row["organization_id"] != invoice["organization_id"]:
            yield "usage row {} is of another organization".format(row["id"])
        if not row["window_start"].startswith(run["day"]):
            yield "usage row {} is not of its run's day".format(row["id"])
        if not run["day"].startswith(invoice["month"]):
            yield "usage row {} is not of the invoice's month".format(row["id"])
        if int(row["quantity"]) < 0:
            yield "usage row {} is below zero".format(row["id"])
        key = (row["run_id"], row["meter"])
        sums[key] = sums.get(key, 0) + int(row["quantity"])
    control_totals = {
        (run["id"], meter): int(total)
        for run in runs
        for meter, total in run["control_totals"].items()
    }
    for key in sorted(set(control_totals) | set(sums)):
        if control_totals.get(key, 0) != sums.get(key, 0):
            yield (
                f"{key[1]} of run {key[0]}: the rows sum to {sums.get(key, 0)},"
                f" the control total is {control_totals.get(key, 0)}"
            )


def compare_lines(invoice: Json, prices: Json, rows: Rows) -> Iterator[str]:
    """Lines of the invoice that differ from what rows and prices give."""
    if (prices["version"], prices["currency"]) != (invoice["price_version"], invoice["currency"]):
        yield "prices.json is another list of prices than the invoice's"
    rated = rate_rows(invoice, prices, rows)
    sign = -1 if invoice["kind"] == "credit_note" else 1
    billed = {}
    for line in invoice["lines"]:
        if line["kind"] != "usage":
            continue
        key = (line["meter"], line["cluster_id"])
        if key in billed:
            yield "{} of {} is billed twice".format(*key)
        billed[key] = {
            "quantity": line["quantity"],
            "free_quantity": line["free_quantity"],
            "unit_price": Decimal(line["unit_price"]),
            "price_unit": line["price_unit"],
            "price_unit_size": line["price_unit_size"],
            "amount_minor": sign * line["amount_minor"],
        }
    for key in sorted(set(billed) | set(rated)):
        if key not in rated:
            yield "{} of {} is billed, and no usage row is of it".format(*key)
        elif key not in billed:
            yield "{} of {} was used, and no line bills it".format(*key)
        else:
            for name, value in rated[key].items():
                if billed[key][name] != value:
                    yield (
                        f"{key[0]} of {key[1]}: {name} is {billed[key][name]} on the invoice,"
                        f" and {value} recomputed"
                    )


def rate_rows(invoice: Json, prices: Json, rows: Rows) -> dict[tuple[str, str], dict[str, Any]]:
    """(meter, cluster) -> the values that the invoice's line must have.

    What is free of a meter says the invoice's allowance, where it has one, and else the list of
    prices. Raises ValueError where a meter has no price.
    """
    month, allowance = invoice["month"], invoice.get("allowance")
    totals: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["meter"], row["cluster_id"])
        totals[key] = totals.get(key, 0) + int(row["quantity"])
    lines = {}
    for price in prices["prices"]:
        size = unit_size(price["unit"], month)
        if allowance is None:
            free_left = int(price["free_units"]) * unit_size(price["free_unit"], month)
        else:
            free_left = int(allowance["free"].get(price["meter"], "0"))
        price_per_base_unit = (
            Fraction(Decimal(price["unit_price"])) * MINOR_UNITS[prices["currency"]] / size
        )
        of_meter: dict[str, int] = {}
        # The clusters of the organization use the free allowance up in the order of their ids.
        clusters = sorted(cluster for meter, cluster in totals if meter == price["meter"])
        for cluster in clusters:
            quantity = totals.pop((price["meter"], cluster))
            if quantity == 0:
                continue
            free = min(quantity, free_left)
            free_left -= free
            of_meter[cluster] = quantity - free
            lines[price["meter"], cluster] = {
                "quantity": quantity,
                "free_quantity": free,
                "unit_price": Decimal(price["unit_price"]),
                "price_unit": price["unit"],
                "price_unit_size": size,
            }
        amounts = round_lines(invoice, of_meter, price_per_base_unit)
        for cluster, amount in amounts.items():
            lines[price["meter"], cluster]["amount_minor"] = amount
    if totals:
        raise ValueError(f"there is no price for {sorted(totals)[0][0]}")
    return lines


def round_lines(
    invoice: Json, quantities: dict[str, int], price_per_base_unit: Fraction
) -> dict[str, int]:
    """Cluster -> the amount of a meter's line. `quantities` are those to pay for.

    Their sum is rounded once, and its whole units are given out in proportion: first those that
    are each line's in full, then one each in the order of what was left over. Invoices from before
    say no `rounding`: each of their lines was rounded by itself. Raises ValueError for another one.
    """
    rounding = invoice.get("rounding", "line")
    if rounding == "line":
        return {cluster: half_up(n * price_per_base_unit) for cluster, n in quantities.items()}
    if rounding != "meter":
        raise ValueError(f"rounding is {rounding}, which this program does not know")
    total = sum(quantities.values())
    amount = half_up(total * price_per_base_unit)
    exact = {cluster: Fraction(amount * n, max(total, 1)) for cluster, n in quantities.items()}
    shares = {cluster: part.numerator // part.denominator for cluster, part in exact.items()}
    order = sorted(
        quantities,
        key=lambda cluster: (shares[cluster] - exact[cluster], -quantities[cluster], cluster),
    )
    for cluster in order[: amount - sum(shares.values())]:
        shares[cluster] += 1
    return shares


def compare_sums(invoice: Json) -> Iterator[str]:
    """Sums of the invoice that differ from those of its lines."""
    sign = -1 if invoice["kind"] == "credit_note" else 1
    usage = sum(line["amount_minor"] for line in invoice["lines"] if line["kind"] == "usage")
    other = sum(line["amount_minor"] for line in invoice["lines"] if line["kind"] != "usage")
    cap = invoice["cap_minor"]
    beyond = 0 if cap is None else max(0, sign * usage - cap)
    if sign * other != -beyond:
        yield f"beyond the suspending budget: {sign * other} on the invoice, {-beyond} recomputed"
    subtotal = usage + other
    tax = sign * half_up(
        Fraction(sign * subtotal) * Fraction(Decimal(invoice["tax"]["percent"])) / 100
    )
    for name, value in (
        ("subtotal_minor", subtotal),
        ("tax_minor", tax),
        ("total_minor", subtotal + tax),
    ):
        if invoice[name] != value:
            yield f"{name} is {invoice[name]} on the invoice, and {value} recomputed"


def unit_size(unit: str, month: str) -> int:
    """Base units (bytes, byte-minutes, partition-minutes) in one unit of a price."""
    year, number = (int(part) for part in month.split("-"))
    minutes = calendar.monthrange(year, number)[1] * 24 * 60
    sizes = {
        "GiB": GIB,
        "GiB-month": GIB * minutes,
        "partition-hour": 60,
        "partition-month": minutes,
    }
    return sizes[unit]


def half_up(exact: Fraction) -> int:
    """The nearest whole number; of two as near the greater."""
    return (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)


def content_sha256(invoice: Json) -> str:
    """The hash that is printed on the invoice: of its whole content but the ids of roll-ups."""
    content = {name: value for name, value in invoice.items() if name != "usage_basis"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def print_line(text: str) -> None:
    """Prints one line."""
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
