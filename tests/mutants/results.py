"""What is known of each mutant, kept on disk from run to run."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.mutants.sites import Site
from tests.tree import TREE


class Results:
    """What is known of each mutant, on disk after every one of them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        tests = sorted((TREE / "tests").rglob("*.py"))
        self._tests = digest(path.read_bytes() for path in tests)
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


def digest(parts: Iterable[bytes]) -> str:
    """A short name for these bytes."""
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()[:16]


def _source_digest(site: Site) -> str:
    return digest([(TREE / site.path).read_bytes()])
