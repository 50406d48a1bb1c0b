"""A Spark older than the oldest supported version is refused in a sentence, before any work."""

import subprocess
import sys
from pathlib import Path

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.spark.spark_versions import refuse_too_old
from tests.tree import TREE

INPUT = TREE / "rebalance_core/bundled/demo/join-leave/tables"


@pytest.mark.parametrize("version", ["3.4.4", "2.4.8", "3.4.0.dev0", "3"])
def test_an_older_session_is_refused(version: str) -> None:
    with pytest.raises(UsageError, match=f"Spark is {version}, which is too old: valid is 3.5 to"):
        refuse_too_old(version)


@pytest.mark.parametrize("version", ["3.5.0", "3.10.1", "4.0.0-amzn-0", "4.3.0", "5.0.0"])
def test_others_are_not(version: str) -> None:
    refuse_too_old(version)


def test_an_older_pyspark_is_not_even_imported(tmp_path: Path) -> None:
    package = tmp_path / "pyspark"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemError('does not survive this Python')\n")
    (package / "version.py").write_text('__version__: str = "3.3.4"\n')
    words = ["simulate", "--input", INPUT, "--output", tmp_path / "out", "--run-on", "spark"]
    code = "import sys; from rebalance_core.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        cwd=TREE,
        env={"PYTHONPATH": f"{tmp_path}:{TREE}", "PATH": ""},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "rebalance: pyspark is 3.3.4, which is too old: valid is 3.5 to 4.3; install such "
        "a version (pip install 'pyspark>=3.5,<4.4') or name a --master with a newer Spark\n"
    )
    assert not (tmp_path / "out").exists()
