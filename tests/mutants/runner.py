"""One mutant after the other in a copy of the tree, until a test fails."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.packages import COPIED, PACKAGES, package_of
from tests.mutants.sites import Site, mutate
from tests.tree import TREE

SLOWER = 3  # a mutant that makes the tests this many times slower is killed (endless loops)
AT_LEAST_S = 60
PYTEST = (
    *("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"),
    *("-p", "tests.mutants.no_shrinking", "-m", "not (oracle or slow or bench)"),
)
FAILED = (1, 2)  # pytest's exit codes for a failed test and for a file that cannot be imported


def tests_of(path: str, stage: int, tree: Path) -> list[str]:
    """The tests of a mutated file in the order in which they run."""
    paths = [tree / test for test in PACKAGES[package_of(path)][stage]]
    files = [f for p in paths for f in (sorted(p.rglob("test_*.py")) if p.is_dir() else [p])]
    own = f"test_{Path(path).name}"
    files.sort(key=lambda file: file.name != own)
    return list(dict.fromkeys(file.relative_to(tree).as_posix() for file in files))


def run_tests(tree: Path, tests: Iterable[str], timeout_s: float | None) -> tuple[int | None, str]:
    """(pytest's exit code, its last line about a failure); None: it took too long."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *PYTEST, *tests]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return None, "took too long"
    lines = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, lines[-1][:160] if lines else ""


def copy_tree(to: Path) -> None:
    """A fresh copy of what the tests read."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    for name in COPIED:
        source = TREE / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, to / name, ignore=ignored)
        else:
            shutil.copy(source, to / name)


class Runner:
    """Runs mutants in a copy of the tree; the tests must pass there without any mistake."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._limits: dict[tuple[str, int], float] = {}
        copy_tree(tree)

    def run(self, site: Site) -> tuple[str, str]:
        """("killed" or "survived", by which test)."""
        for stage in range(len(PACKAGES[package_of(site.path)])):
            limit = self._limit(site, stage)
            file = self._tree / site.path
            source = file.read_bytes()
            file.write_bytes(mutate(source, site))
            try:
                code, by = run_tests(self._tree, tests_of(site.path, stage, self._tree), limit)
            finally:
                file.write_bytes(source)
            if code is None or code in FAILED:
                return "killed", by
            if code != 0:
                raise SystemExit(f"{site.key}: pytest ended with {code}")
        return "survived", ""

    def _limit(self, site: Site, stage: int) -> float:
        package = package_of(site.path)
        if (package, stage) not in self._limits:
            print(f"{package}: its tests (stage {stage + 1}) without any mistake", flush=True)
            started = time.monotonic()
            code, by = run_tests(self._tree, tests_of(site.path, stage, self._tree), None)
            if code != 0:
                print(f"{package}: the tests fail without any mistake: {by}", file=sys.stderr)
                raise SystemExit(2)
            self._limits[package, stage] = SLOWER * (time.monotonic() - started) + AT_LEAST_S
        return self._limits[package, stage]
