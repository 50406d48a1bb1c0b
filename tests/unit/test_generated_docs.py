"""What `make docs` writes is what is checked in."""

import re
import subprocess
import sys

import pytest

from tests.tree import TREE

GENERATED = re.findall(r"python -m (\S+) > (\S+)", (TREE / "Makefile").read_text())


def test_make_docs_writes_pages() -> None:
    assert {page for _, page in GENERATED} >= {
        "docs/data-dictionary.md",
        "docs/audit-rules.md",
        "rebalance_core/contracts/rows.py",
        "rebalance_core/ingest/evidence_types.py",
        "tests/unit/public_interface.txt",
    }


@pytest.mark.parametrize(("module", "page"), GENERATED)
def test_a_generated_page_is_current(module: str, page: str) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", module], cwd=TREE, stdout=subprocess.PIPE, check=True
    ).stdout
    assert printed == (TREE / page).read_bytes(), "make docs writes it anew"
