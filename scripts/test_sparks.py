"""Run jobs, line tests and Spark Connect on several Sparks, each in an environment of its own.

    python -m scripts.test_sparks 3.5 4.0 …

Environments are in .venv-sparks/, made from the dependency groups of pyproject.toml. The digests of
every job must equal those of a run in a process. Prints a table for docs/spark.md; exits with 1 if
a test failed.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from scripts.environments import python_with

TREE = Path(__file__).resolve().parent.parent
ENVIRONMENTS = TREE / ".venv-sparks"
REPORTS = TREE / "out/test-sparks"
SUITES = {
    "jobs": ["tests/jobs/test_both_places.py"],
    "lines": [
        "tests/spark/test_read.py",
        "tests/spark/test_checks_agree.py",
        "tests/spark/test_ingest.py::test_lines_of_a_frame_are_a_collection",
        "tests/spark/test_ingest.py::test_a_collection_is_a_data_source",
    ],
    "functions": [],
    "Connect": ["tests/spark/test_connect.py"],
}
FUNCTIONS = "tests/spark/test_functions*.py"
"""There where `rebalance_core.spark.functions` is."""
SHOWN = ("pyspark", "pandas", "pyarrow", "numpy")


def versions_in(python: Path) -> list[str]:
    """Return the versions of `SHOWN`."""
    code = f"import importlib.metadata as m; print(*map(m.version, {SHOWN}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def outcome(python: Path, spark: str, suite: str, files: list[str]) -> tuple[str, bool]:
    """Return how many tests of a suite passed, in words, and whether none failed."""
    report = REPORTS / f"{spark}-{suite}.xml"
    # older Sparks warn of newer Pythons; slow tests are the purpose of the lane
    words = ["-q", "-o", "filterwarnings=default", "-p", "no:cacheprovider", f"--junitxml={report}"]
    done = subprocess.run(
        [python, "-m", "pytest", *words, *files],
        cwd=TREE,
        env=os.environ | {"PYTHONPATH": str(TREE)},
        check=False,
    )
    (found,) = ElementTree.parse(report).getroot().iter("testsuite")
    tests, skipped = int(found.attrib["tests"]), int(found.attrib["skipped"])
    wrong = int(found.attrib["failures"]) + int(found.attrib["errors"])
    words = [f"{tests - skipped - wrong} passed"]
    words += [
        f"{count} {name}" for count, name in ((wrong, "failed"), (skipped, "skipped")) if count
    ]
    return ", ".join(words), done.returncode == 0


def main(sparks: list[str]) -> int:
    """Run every suite on every Spark; return 1 if a test failed."""
    groups = tomllib.loads((TREE / "pyproject.toml").read_text())["dependency-groups"]
    known = [name.removeprefix("spark-") for name in groups if name.startswith("spark-")]
    if not sparks or set(sparks) - set(known):
        sys.exit(f"usage: test_sparks.py SPARK…; known: {' '.join(known)}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    suites = SUITES | {"functions": [str(path) for path in sorted(TREE.glob(FUNCTIONS))]}
    suites = {name: files for name, files in suites.items() if files}
    rows, good = [("Spark", *SHOWN[1:], *suites)], True
    for spark in sparks:
        wanted = [*groups[f"spark-{spark}"], *groups["test-sparks"]]
        python = python_with(ENVIRONMENTS / spark, wanted)
        found = [outcome(python, spark, name, files) for name, files in suites.items()]
        good = good and all(passed for _, passed in found)
        rows.append((*versions_in(python), *(words for words, _ in found)))
    rows.insert(1, ("---",) * len(rows[0]))
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
