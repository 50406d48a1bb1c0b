"""``python -m tests.mutants``: does some test notice when the code is changed by one mistake?

A seeded sample of mistakes (`tests.mutants.sites`) is made one at a time in a copy of the tree, and
the tests of the mutated package (`tests.mutants.packages`) run there until the first one fails.
Results are kept in ``out/mutants``: a run that was cut short goes on where it stopped, and after
new tests only the survivors run again.

Exit codes: 0 enough were killed; 1 too few; 2 the tests fail without any mistake.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.mutants.equivalents import why_equivalent
from tests.mutants.packages import COPIED, PACKAGES, TREE, package_of
from tests.mutants.report import REPORT, write_report
from tests.mutants.sites import Site, mutate, sites_of

SAMPLE, SEED, WANTED_PERCENT = 150, 14, 95
SLOWER = 3  # a mutant that makes the tests this many times slower is killed (endless loops)
AT_LEAST_S = 60
PYTEST = (
    *("-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"),
    *("-p", "tests.mutants.no_shrinking", "-m", "not (oracle or slow or bench)"),
)
FAILED = (1, 2)  # pytest's exit codes for a failed test and for a file that cannot be imported


def all_sites() -> list[Site]:
    """Every site of the mutated packages."""
    paths = [path for package in PACKAGES for path in sorted((TREE / package).rglob("*.py"))]
    return [
        site
        for path in paths
        for site in sites_of(path.relative_to(TREE).as_posix(), path.read_bytes())
    ]


def sample_of(sites: Iterable[Site], size: int, seed: int) -> list[Site]:
    """So many of the sites, in the order of their files.

    Each site has its own lot, drawn from the seed and from what stands there, not where: a change
    of the code changes the sample only there, and a folder that moves changes nothing.
    """
    seen: Counter[str] = Counter()
    lots = []
    for site in sites:
        text = "|".join((Path(site.path).name, site.text, site.operator, site.before, site.after))
        seen[text] += 1
        lots.append((_digest([f"{seed}|{text}|{seen[text]}".encode()]), site))
    lots.sort(key=lambda lot: lot[0])
    return sorted((site for _, site in lots[:size]), key=lambda site: (site.path, site.start))


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


class Results:
    """What is known of each mutant, on disk after every one of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        tests = sorted((TREE / "tests").rglob("*.py"))
        self._tests = _digest(path.read_bytes() for path in tests)
        self._known: dict[str, dict[str, Any]] = {}
        if path.exists():
            for line in path.read_text("utf-8").splitlines():
                row = json.loads(line)
                self._known[row["key"]] = row

    def of(self, site: Site) -> dict[str, Any] | None:
        """The result, unless the file (or, for a survivor, some test) has changed since."""
        row = self._known.get(site.key)
        if row is None or row["source"] != _source_digest(site):
            return None
        return row if row["status"] == "killed" or row["tests"] == self._tests else None

    def add(self, site: Site, status: str, by: str, seconds: float) -> dict[str, Any]:
        """Writes one result down."""
        row = {"key": site.key, "status": status, "by": by, "seconds": round(seconds, 1)}
        row |= {"source": _source_digest(site), "tests": self._tests}
        with self._path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(row) + "\n")
        self._known[site.key] = row
        return row


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:16]


def _source_digest(site: Site) -> str:
    return _digest([(TREE / site.path).read_bytes()])


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


def main() -> int:
    """Runs the sample; returns the exit code."""
    parser = argparse.ArgumentParser(description="Do the tests notice small mistakes?")
    parser.add_argument("--sample", type=int, default=SAMPLE, help="how many mutants")
    parser.add_argument("--seed", type=int, default=SEED, help="which mutants")
    parser.add_argument("--only", default="", help="mutants of paths that contain this text")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results")
    options = parser.parse_args()
    out = TREE / "out" / "mutants"
    out.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        (out / "results.jsonl").unlink(missing_ok=True)
    results, runner = Results(out / "results.jsonl"), None
    found = all_sites()
    sample = sample_of(found, options.sample, options.seed)
    rows = []
    for number, site in enumerate(sample, start=1):
        if options.only not in site.path:
            continue
        row = results.of(site)
        if row is None and why_equivalent(site):
            row = {"status": "survived"}
        if row is None:
            runner = runner or Runner(out / "tree")
            started = time.monotonic()
            status, by = runner.run(site)
            row = results.add(site, status, by, time.monotonic() - started)
            print(f"{number}/{len(sample)} {site.key}: {status} {by}", flush=True)
        rows.append((site, row))
    killed = write_report(out / REPORT, rows, len(found), options.seed)
    return 0 if 100 * killed >= WANTED_PERCENT * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
