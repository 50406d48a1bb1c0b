"""The wheel without its extras: one line says what to install; jobs in one process need neither
pyspark nor Java.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tree import TREE

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
        f"rebalance: {package} is not installed: pip install 'WHEEL[{extra}]' "
        f"(the .whl file), or {package} on its own"
    )
    assert (done.returncode, done.stdout, said in done.stderr.splitlines()) == (2, "", True)


def test_a_module_of_ours_that_is_missing_is_a_bug() -> None:
    from rebalance_core.cli.terminal import ExitCode, exit_code_of

    ours = ModuleNotFoundError("No module named 'rebalance_core.x'", name="rebalance_core.x")
    assert exit_code_of(ours) == ExitCode.BUG
