"""``python -m tests.mutants``: does some test notice when the code is changed by one mistake?

A seeded sample of mistakes (`tests.mutants.sites`) is made one at a time in a copy of the tree, and
the tests of the mutated package (`tests.mutants.packages`) run there until the first one fails.
Results are kept in ``out/mutants``: a run that was cut short goes on where it stopped, and after
new tests only the survivors run again.

Exit codes: 0 enough were killed; 1 too few; 2 the tests fail without any mistake.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.mutants.equivalents import why_equivalent
from tests.mutants.packages import PACKAGES
from tests.mutants.report import REPORT, write_report
from tests.mutants.results import Results, digest
from tests.mutants.runner import Runner
from tests.mutants.sites import Site, sites_of
from tests.tree import TREE

SAMPLE, SEED, WANTED_PERCENT = 150, 14, 95


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
        lots.append((digest([f"{seed}|{text}|{seen[text]}".encode()]), site))
    lots.sort(key=lambda lot: lot[0])
    return sorted((site for _, site in lots[:size]), key=lambda site: (site.path, site.start))


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
