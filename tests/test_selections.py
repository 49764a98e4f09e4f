"""`make test` and `make test-rest` share the tests between them: none runs in both."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from configparser import ConfigParser
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.documents import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PEERS = ("dp_accounting", "opacus", "prv_accountant", "sklearn", "torch")
# Collects as though some packages were missing; prints what is taken, what is left, what is shared.
COLLECT = """
import sys
from importlib.machinery import PathFinder
import pytest
missing, *arguments = sys.argv[1:]
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, *given):
        return None if name in missing.split() else super().find_spec(name, *given)
sys.meta_path[sys.meta_path.index(PathFinder)] = Without
class Listed:
    taken, left = [], []
    def pytest_collection_finish(self, session): self.taken += session.items
    def pytest_deselected(self, items): self.left += items
status = pytest.main(["--collect-only", "-qq", *arguments], plugins=[Listed()])
print("\\f", *(one.nodeid for one in Listed.taken), sep="\\n")
print("\\f", *(one.nodeid for one in Listed.left), sep="\\n")
shared = (one for one in Listed.taken + Listed.left if one.get_closest_marker("shared"))
print("\\f", *(one.nodeid for one in shared), sep="\\n")
sys.exit(status)
"""


def _selection(name: str) -> str:
    """Return the expression that the Makefile gives to `-m`."""
    (found,) = re.findall(rf"^{name} := (.+)$", MAKEFILE, re.MULTILINE)
    return str(found)


def _collected(expression: str, *paths: str, missing: tuple[str, ...] = ()) -> list[list[str]]:
    """Return the names of tests that are selected, of those that are not, and of shared ones."""
    command = [sys.executable, "-c", COLLECT, " ".join(missing), "-m", expression, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout.partition("\f")[0] + done.stderr
    return [sorted(part.split("\n")[1:-1]) for part in done.stdout.split("\f")[1:]]


def _functions(tests: Iterable[str]) -> set[str]:
    """Return the names of tests without those of their cases."""
    return {test.partition("[")[0] for test in tests}


@pytest.mark.slow
@pytest.mark.extras
def test_every_test_runs_in_one_of_the_two_runs_but_some_shared_cases() -> None:
    if not all(map(find_spec, PEERS)):
        pytest.skip("not every extra is installed")
    everywhere = ("hockeystick", "tests", "benchmarks")
    usual, *_ = _collected(_selection("USUAL"), missing=PEERS)
    rest, not_in_the_rest, shared = _collected(_selection("REST"), *everywhere)
    assert len(set(usual)) == len(usual) > 5_000
    assert len(set(rest)) == len(rest) > 500
    assert set(usual) <= set(not_in_the_rest)
    left_to_fresh_examples = set(not_in_the_rest) - set(usual)
    assert (
        _functions(left_to_fresh_examples)
        <= _functions(shared)
        <= _functions(usual) | _functions(rest)
    )


SKIPPING = """
import pytest

@pytest.mark.extras
def test_what_is_marked():
    pytest.skip("no browser")

def test_what_is_not():
    pytest.skip("no matplotlib")
"""


def test_in_ci_nothing_but_extras_skips_itself(tmp_path: Path) -> None:
    (tmp_path / "test_skipping.py").write_text(SKIPPING, encoding="utf-8")
    settings = ["-c", str(ROOT / "setup.cfg"), "-p", "conftest"]
    command = [sys.executable, "-m", "pytest", *settings, str(tmp_path)]
    where = os.environ | {"PYTHONPATH": str(ROOT)}
    for ci, said in (("", "2 skipped in"), ("true", "1 failed, 1 skipped in")):
        env = where | {"CI": ci}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert said in done.stdout
    assert "skipped, and not marked extras" in done.stdout
    assert "no matplotlib" in done.stdout


@cache
def _imported() -> frozenset[str]:
    """Return the packages that anything here imports, wherever in a file."""
    found: set[str] = set()
    for folder in ("hockeystick", "tests", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_bytes())):
                if isinstance(node, ast.Import):
                    found |= {name.name.partition(".")[0] for name in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    found.add(node.module.partition(".")[0])
    return frozenset(found) - sys.stdlib_module_names


def test_the_type_checker_never_looks_into_a_package_that_may_be_missing() -> None:
    setup = ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    skipped = {
        package.removesuffix(".*")
        for title, section in setup.items()
        if title.startswith("mypy-") and section.get("follow_imports") == "skip"
        for package in title.removeprefix("mypy-").split(",")
    }
    present = {package for package in _imported() if package not in PEERS and find_spec(package)}
    assert _imported() - present <= skipped
