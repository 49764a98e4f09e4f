"""The commands `ledger ...`: what they print, what they charge, and how they end."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import hockeystick as hs

Run = Callable[..., tuple[int, str, str]]
Write = Callable[[str | bytes], str]

# What the plan file of the tests holds: rho 1/4.
QUARTER = hs.Gaussian(2.0) ** 2
TRAINING = "[dpsgd]\nrate = 0.01\nsteps = 1000\nnoise_multiplier = 1.0\n"


def words(out: str) -> str:
    return " ".join(out.replace("│", " ").split())


def change(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)
        connection.commit()


def test_all_terms_reach_the_ledger(run: Run, write: Write, file: Path) -> None:
    training = write(TRAINING)
    init = ("ledger", "init")
    budget = ("--budget", "ApproxDP(epsilon=4, delta=1e-6)")
    whole = ("--expected", training, "--adjacency", "zero-out")
    assert run(*init, "images", *budget, *whole)[0] == 0
    cap = ("--within", "images")
    assert run(*init, "images/team", *budget, *cap)[0] == 0
    images, team = (hs.Ledger(file, name)._book.terms(name) for name in ("images", "images/team"))
    assert images.order is not None
    assert (team.within, str(team.adjacency)) == ("images", "zero-out")
    assert f"kept at Renyi order {images.order:g}" in words(run("ledger", "status", "images")[1])


def test_the_key_is_printed_once_the_charge_is_on_the_disk(
    run: Run, plan: str, opened: Path
) -> None:
    status, out, err = run("ledger", "reserve", "census", plan, "--note", "Q3")
    assert (status, err) == (0, "")
    (entry,) = hs.Ledger(opened, "census").history()[1:]
    assert (entry.key, entry.note) == (out.strip(), "Q3")
    assert entry.mechanism == QUARTER
    status, out, _ = run("ledger", "reserve", "census", plan, "--key", "k", "--json")
    told = json.loads(out)
    assert (status, told["key"], told["state"], told["resumed"]) == (0, "k", "reserved", False)
    assert told["mechanism"] == hs.calibration.describe(QUARTER)


def test_the_same_key_is_resumed_alone_and_charged_once(run: Run, plan: str, opened: Path) -> None:
    asked = ("ledger", "reserve", "census", plan, "--key", "k")
    assert run(*asked) == (0, "k\n", "")
    status, out, err = run(*asked)
    assert (status, out) == (2, "")
    assert "key must be one that was not reserved before" in err
    resumed = run(*asked, "--resume")
    assert resumed == (0, "k\n", "hockeystick: 'k' was reserved before: charged once\n")
    assert hs.Ledger(opened, "census").remaining == hs.ZCDP(rho=0.25)


@pytest.mark.parametrize("resolved", ["commit", "release"])
def test_a_resolved_key_is_no_leave_to_run(
    run: Run, plan: str, opened: Path, resolved: str
) -> None:
    asked = ("ledger", "reserve", "census", plan, "--key", "k")
    run(*asked)
    assert run("ledger", resolved, "census", "k")[0] == 0
    for more in ((), ("--resume",)):
        status, out, err = run(*asked, *more)
        assert (status, out) == (2, "")
        assert "is no leave to run" in err


def test_what_no_budget_covers_ends_with_status_4(run: Run, plan: str, opened: Path) -> None:
    for key in ("a", "b"):
        run("ledger", "reserve", "census", plan, "--key", key)
    status, out, err = run("ledger", "reserve", "census", plan)
    assert (status, out) == (4, "")
    assert "the budget does not cover Gaussian (noise multiplier 2) x 2 on 'census'" in err
    assert len(err.splitlines()) == 1
    assert hs.Ledger(opened, "census").status.entries == 3


def test_a_part_is_committed_by_the_flags_of_a_plan(run: Run, write: Write, file: Path) -> None:
    training = write(TRAINING)
    budget = ("--budget", "ApproxDP(8, 1e-5)", "--expected", training)
    run("ledger", "init", "images", *budget)
    run("ledger", "reserve", "images", training, "--key", "run")
    full = hs.Ledger(file, "images").history()[-1].costs[0]
    more = run("ledger", "commit", "images", "run", training, "steps=1001")
    assert more[0] == 2
    assert "is no part of" in more[2]
    done = run("ledger", "commit", "images", "run", training, "steps=400", "--note", "early")
    assert done == (0, "run: committed\n", "")
    last = hs.Ledger(file, "images").history()[-1]
    assert (last.costs[0], last.note) == (full * 400 / 1000, "early")


def test_what_is_given_back_counts_no_more(run: Run, plan: str, opened: Path) -> None:
    run("ledger", "reserve", "census", plan, "--key", "k")
    assert run("ledger", "release", "census", "k", "--note", "n") == (0, "k: released\n", "")
    assert hs.Ledger(opened, "census").remaining == hs.ZCDP(rho=0.5)
    assert "nothing" in run("ledger", "log", "census")[1]


def test_several_datasets_are_charged_together(run: Run, plan: str, opened: Path) -> None:
    run("ledger", "init", "2026-02", "--budget", "ZCDP(rho=0.3)")
    run("ledger", "reserve", "census", plan, "--key", "k", "--also", "2026-02")
    status, out, _ = run("ledger", "status")
    assert status == 0
    assert [line.split() for line in out.splitlines()[2:4]] == [
        ["2026-02", "rho", "0.05", "of", "rho", "0.3", "1", "2"],
        ["census", "rho", "0.25", "of", "rho", "0.5", "1", "2"],
    ]


def test_a_status_for_programs_is_exact(run: Run, plan: str, opened: Path) -> None:
    run("ledger", "reserve", "census", plan, "--key", "k")
    (told,) = json.loads(run("ledger", "status", "census", "--json")[1])["datasets"]
    status = hs.Ledger(opened, "census").status
    read = hs.calibration.read_description
    assert [read(told[name]) for name in ("budget", "spent", "remaining")] == [
        status.budget,
        status.spent,
        status.remaining,
    ]
    assert (told["head"], told["unresolved"], told["entries"]) == (status.head, 1, 2)


def test_a_sound_ledger_ends_with_status_0_and_a_damaged_one_with_1(
    run: Run, plan: str, opened: Path
) -> None:
    run("ledger", "reserve", "census", plan, "--key", "k")
    status, out, err = run("ledger", "verify")
    assert (status, err) == (0, "")
    assert out.startswith("sound  census")
    change(opened, "UPDATE hockeystick_entries SET note = 'another' WHERE seq = 1")
    status, out, _ = run("ledger", "verify", "census")
    assert status == 1
    assert out.startswith("not sound  census")
    assert "entry 1: it was changed: its hash is another one" in out
    status, out, _ = run("ledger", "verify", "--json")
    assert (status, json.loads(out)["datasets"][0]["sound"]) == (1, False)


def test_heads_that_were_noted_show_what_was_taken_away(
    run: Run, plan: str, opened: Path, tmp_path: Path
) -> None:
    run("ledger", "init", "other", "--budget", "ZCDP(1)")
    before = opened.read_bytes()
    run("ledger", "reserve", "census", plan, "--key", "k")
    noted = tmp_path / "heads.json"
    noted.write_text(run("ledger", "status", "--json")[1], encoding="utf-8")
    head = hs.Ledger(opened, "census").status.head
    assert run("ledger", "verify", "--head", str(noted))[0] == 0
    assert run("ledger", "verify", "census", "--head", head)[0] == 0
    opened.write_bytes(before)
    assert run("ledger", "verify")[0] == 0, "an old copy is a chain of its own"
    for asked in (("--head", str(noted)), ("census", "--head", head)):
        status, out, _ = run("ledger", "verify", *asked)
        assert status == 1
        assert f"the head that was noted, {head}, is not in the chain" in words(out)


def test_a_dataset_that_was_noted_and_is_gone_is_no_sound_one(
    run: Run, opened: Path, tmp_path: Path
) -> None:
    told = json.loads(run("ledger", "status", "census", "--json")[1])
    told["datasets"].append({**told["datasets"][0], "dataset": "lost"})
    noted = tmp_path / "heads.json"
    noted.write_text(json.dumps(told), encoding="utf-8")
    status, out, _ = run("ledger", "verify", "--head", str(noted))
    assert status == 1
    assert "not sound  lost" in out
    assert "it is not in the ledger any more" in out


def test_the_log_can_be_checked_without_this_library(run: Run, plan: str, opened: Path) -> None:
    run("ledger", "reserve", "census", plan, "--key", "k", "--note", 'über "x", y')
    entries = json.loads(run("ledger", "log", "census", "--json")[1])["entries"]
    before = "0" * 64
    for entry in entries:
        *values, digest = entry.values()
        assert entry["previous"] == before
        text = json.dumps(values, separators=(",", ":"))
        before = hashlib.sha256(text.encode()).hexdigest()
        assert digest == before
    assert f"2:{before}" == hs.Ledger(opened, "census").status.head
