"""The wheel without its extras: one line says what to install; jobs in one process need
neither pyspark nor Java.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import TREE

# The wheel without its extras: one line says what to install.

TABLES = str(TREE / "rebalance_core/bundled/demo/join-leave/tables")
WITHOUT = "import sys; sys.modules[{0!r}] = None\nfrom rebalance_core.cli.main import main; {1}"


@pytest.mark.parametrize(
    ("package", "extra", "more"),
    [
        ("numpy", "process", ()),
        ("pyarrow", "process", ()),
        ("pyspark", "spark", ("--run-on", "spark")),
    ],
)
def test_it_ends_with_2(tmp_path: Path, package: str, extra: str, more: tuple[str, ...]) -> None:
    words = ["simulate", "--input", TABLES, "--output", str(tmp_path / "out"), *more]
    program = WITHOUT.format(package, f"sys.exit(main(None, {words!r}))")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    said = (
        f"rebalance: {package} is not installed here: pip install 'WHEEL[{extra}]' "
        f"(the .whl file), or {package} by itself"
    )
    assert (done.returncode, done.stdout, said in done.stderr.splitlines()) == (2, "", True)


def test_a_module_of_ours_that_is_missing_is_a_bug() -> None:
    from rebalance_core.cli.terminal import ExitCode, exit_code_of

    ours = ModuleNotFoundError("No module named 'rebalance_core.x'", name="rebalance_core.x")
    assert exit_code_of(ours) == ExitCode.BUG


# The jobs that run in one process need neither pyspark nor Java.

COLLECTION = TREE / "tests/recordings/data/join-leave/collection"
BLOCKED = ("pyspark", "py4j")
RUN = """
from rebalance_core.cli.main import main
for more in (["--dry-run"], []):
    if code := main(None, [*sys.argv[1:], *more]):
        sys.exit(code)
"""


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--collection", COLLECTION),
        ("audit", "--collection", COLLECTION, "--redact-clients"),
        ("ingest", "--collection", COLLECTION),
        ("generate", "--groups", "2"),
    ],
    ids=["audit", "redacted", "ingest", "generate"],
)
def test_a_job_and_its_dry_run(words: tuple[str | Path, ...], tmp_path: Path) -> None:
    blocked = "; ".join(f"sys.modules[{name!r}] = None" for name in BLOCKED)
    command = [sys.executable, "-c", f"import sys; {blocked}\n{RUN}", *map(str, words)]
    done = subprocess.run(
        [*command, "--output", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(TREE), "JAVA_HOME": "/none"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out/_run.json").read_text())["run_on"] == "process"
