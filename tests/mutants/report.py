"""What was killed and what survived, as a page and as the last lines of the run."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.mutants.equivalents import why_equivalent
from tests.mutants.packages import PACKAGES, package_of
from tests.mutants.sites import Site
from tests.tree import TREE

REPORT = "report.md"


def write_report(
    path: Path, rows: Sequence[tuple[Site, dict[str, Any]]], sites: int, seed: int
) -> int:
    """Writes the page, prints the survivors and the sum; returns how many were killed."""
    killed = sum(row["status"] == "killed" for _, row in rows)
    survivors = [site for site, row in rows if row["status"] != "killed"]
    total = f"{len(rows)} mutants, {killed} killed, {len(survivors)} survived"
    lines = [f"# {total}", "", f"Seed {seed}; sampled from {sites} sites.", ""]
    lines += ["| package | mutants | killed |", "|---|---|---|"]
    of_package = Counter(package_of(site.path) for site, _ in rows)
    killed_of = Counter(package_of(site.path) for site, row in rows if row["status"] == "killed")
    lines += [f"| {name} | {of_package[name]} | {killed_of[name]} |" for name in PACKAGES]
    if survivors:
        lines += ["", "## Survivors", ""]
    for site in survivors:
        why = why_equivalent(site) or "no test notices"
        lines += [f"- `{site.path}:{site.line}` ({site.operator}): `{_shown(site)}`: {why}"]
        print(f"survived: {site.path}:{site.line} {site.operator}: {_shown(site)}: {why}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"report: {path.relative_to(TREE)}")
    print(f"{total}: {100 * killed / max(1, len(rows)):.1f} %")
    return killed


def _shown(site: Site) -> str:
    before, after = (" ".join(text.split()) for text in (site.before, site.after))
    return f"{before} -> {after}"
