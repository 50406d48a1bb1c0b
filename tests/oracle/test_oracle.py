"""Random cases against the released Java classes; ``make oracle``."""

import subprocess
import sys

import pytest

from tests.tree import TREE

CASES = 500


@pytest.mark.parametrize(
    ("version", "charset"),
    [
        ("4.9.7", "UTF-8"),
        ("4.9.7", "GBK"),
        ("4.9.7", "ISO-8859-1"),
        ("5.3.3", "UTF-8"),
        ("5.5.0", "UTF-8"),
    ],
)
def test_random_cases_agree(version: str, charset: str) -> None:
    # A process each: one JVM cannot hold two versions nor change its charset.
    options = ["--cases", str(CASES), "--charset", charset]
    run = subprocess.run(
        [sys.executable, "-m", "tests.oracle.compare", version, *options],
        cwd=TREE,
        capture_output=True,
        text=True,
        timeout=550,
    )
    print(run.stdout)  # holds the seed
    assert f"rocketmq-client-{version}.jar" in run.stdout, run.stderr[-2000:]
    assert f"{CASES} cases, 0 differences" in run.stdout
    assert run.returncode == 0
