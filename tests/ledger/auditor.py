"""An auditor of ledgers that knows nothing of the package: raw tables, hashes, sums and limits.

``python auditor.py DATABASE`` prints one JSON object: what is ``wrong``, a sentence each, and for
each dataset its head and the last kind of entry of each key. DATABASE is the path of a SQLite file
or ``postgresql://...``. In a budget of rho the prices of Gaussian releases are computed anew, from
the decimals that are recorded; other prices are taken as they are.
"""

import hashlib
import json
import sqlite3
import sys
from collections import defaultdict
from fractions import Fraction
from typing import Any, Final

Row = dict[str, Any]

HASHED: Final = (
    *("dataset", "seq", "kind", "key", "content", "price", "spent", "together"),
    *("by", "at", "note", "version", "previous"),
)
NEXT: Final = {None: ("reserve",), "reserve": ("commit", "release"), "commit": (), "release": ()}
# Prices are rounded up where they are no short fractions.
ROUNDED: Final = Fraction(1, 10**35)
SHARED: Final = ("reserve", "commit", "release")


def rows_of(database: str, table: str) -> list[Row]:
    if database.startswith("postgresql://"):
        import psycopg

        with psycopg.connect(database) as server:
            found: Any = server.execute(f"SELECT * FROM {table}".encode())
            return _named(found)
    file = sqlite3.connect(f"file:{database}?mode=rw", uri=True)
    try:
        return _named(file.execute(f"SELECT * FROM {table}"))
    finally:
        file.close()


def _named(cursor: Any) -> list[Row]:
    names = [one[0] for one in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def numbers(text: str) -> list[Fraction]:
    pairs = (one.split("/") for one in json.loads(text))
    return [Fraction(int(top, 16), int(bottom, 16)) for top, bottom in pairs]


def covered(terms: Row, limits: list[Fraction], spent: list[Fraction]) -> bool:
    """Return whether sums are within the limits with which a dataset was opened."""
    if terms["budget"]["type"] == "ApproxDP" and terms["order"] is None:
        (losses, unbounded, rho, delta), (epsilon, most, failures) = spent, limits
        return delta <= failures and ((unbounded == 0 and losses <= epsilon) or rho <= most)
    return all(a <= b for a, b in zip(spent, limits, strict=True))


def rho_of(content: Row | None) -> Fraction | None:
    """Return the exact rho of a plan of Gaussian releases; None of any other plan."""
    if content is None:
        return Fraction(0)
    if content["type"] == "Gaussian":
        return 1 / (2 * Fraction(repr(content["noise_multiplier"])) ** 2)
    if content["type"] == "Repeated":
        inner = rho_of(content["inner"])
        return None if inner is None else inner * content["count"]
    return None


class Audit:
    """One dataset's entries, gone through in their order."""

    def __init__(self, entries: list[Row]) -> None:
        self.wrong: list[str] = []
        self.last: dict[str, str] = {}
        self.prices: dict[str, list[Fraction]] = {}
        self.terms: Row = json.loads(entries[0]["content"])
        self.limits = numbers(entries[0]["price"])
        self.spent = [Fraction(0)] * len(numbers(entries[0]["spent"]))
        self.head = "0" * 64
        for seq, entry in enumerate(entries):
            for sentence in self.problems(seq, entry):
                self.wrong.append(f"{entry['dataset']} {seq}: {sentence}")

    def problems(self, seq: int, entry: Row) -> list[str]:
        text = json.dumps([entry[name] for name in HASHED], separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        chained = (entry["seq"], entry["previous"], entry["hash"]) == (seq, self.head, digest)
        self.head = digest
        found = [] if chained else ["the chain is broken"]
        if entry["kind"] == "open":
            return found if seq == 0 else [*found, "opened again"]
        return found + self.of_sum(entry) + self.of_order(entry)

    def of_order(self, entry: Row) -> list[str]:
        """Return what is wrong with when an entry comes."""
        key, kind = entry["key"], entry["kind"]
        if kind == "refuse":
            return []
        before = self.last.get(key)
        if kind == "reprice":
            return [] if before in ("reserve", "commit") else [f"repriced after {before}"]
        self.last[key] = kind
        return [] if kind in NEXT[before] else [f"{kind} after {before}"]

    def of_sum(self, entry: Row) -> list[str]:
        """Return what is wrong with a price and the sum after it."""
        price, found = numbers(entry["price"]), []
        if entry["kind"] == "refuse":
            counts = any(price) or numbers(entry["spent"]) != self.spent
            return ["what was refused counts"] if counts else []
        before = self.prices.get(entry["key"], [Fraction(0)] * len(price))
        changes = zip(self.spent, before, price, strict=True)
        self.spent = [total - old + new for total, old, new in changes]
        self.prices[entry["key"]] = price
        if numbers(entry["spent"]) != self.spent:
            found.append("the sum is not what is spent")
        if entry["kind"] == "release" and any(price):
            found.append("what is released counts")
        overspent = any(price) and not covered(self.terms, self.limits, self.spent)
        if entry["kind"] == "reserve" and overspent:
            found.append("overspent")
        exact = rho_of(json.loads(entry["content"]))
        if self.terms["budget"]["type"] != "ZCDP" or exact is None:
            return found
        if not exact <= price[0] <= exact * (1 + ROUNDED):
            found.append(f"the price is {price[0]} and not {exact}")
        return found


def audit(database: str) -> Row:
    chains: dict[str, list[Row]] = defaultdict(list)
    for entry in sorted(rows_of(database, "hockeystick_entries"), key=lambda one: one["seq"]):
        chains[entry["dataset"]].append(entry)
    wrong: list[str] = []
    datasets: dict[str, Any] = {}
    for row in rows_of(database, "hockeystick_datasets"):
        found = Audit(chains[row["name"]])
        wrong += found.wrong
        told = (row["entries"], row["head"], numbers(row["spent"]), row["unresolved"])
        unresolved = list(found.last.values()).count("reserve")
        if told != (len(chains[row["name"]]), found.head, found.spent, unresolved):
            wrong.append(f"{row['name']}: its row does not say how its chain ends")
        datasets[row["name"]] = {"head": found.head, "last": found.last}
    for name in chains.keys() - datasets.keys():
        wrong.append(f"{name}: entries without a row")
    for entry in (one for chain in chains.values() for one in chain if one["kind"] in SHARED):
        for name in json.loads(entry["together"]):
            last = datasets.get(name, {"last": {}})["last"].get(entry["key"])
            if last != datasets[entry["dataset"]]["last"][entry["key"]]:
                wrong.append(f"{name}: {entry['key']} is {last} there and otherwise elsewhere")
    return {"wrong": wrong, "datasets": datasets}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(audit(sys.argv[1])))
