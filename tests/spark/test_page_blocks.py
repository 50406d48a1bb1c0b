"""Blocks of the pages that say `on Spark` run in a session."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_core.cli.main import main
from tests.docs.pages import Block, Folder, blocks_of
from tests.docs.test_blocks import ENGLISH
from tests.tree import TREE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BLOCKS = [block for page in ENGLISH for block in blocks_of(page) if "on Spark" in block.marks]
DEMO = TREE / "rebalance_core/bundled/demo/join-leave/tables"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("ready") / "rebalance-demo"
    assert main(None, ["demo", str(folder)]) == 0
    return {"tables": DEMO, "rebalance-demo": folder}


def test_pages_have_such_blocks() -> None:
    assert len(BLOCKS) >= 3
    assert {block.kind for block in BLOCKS} == {"python"}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_blocks_on_spark(
    block: Block,
    ready: dict[str, Path],
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, ready, lambda: "".join(capsys.readouterr()))
    code, _ = block.replaced(block.text)
    for name, there in {**ready, "out": tmp_path / "out"}.items():
        code = code.replace(f'"{name}', f'"{there}')  # the JVM has a working folder of its own
    folder.execute(replace(block, text=code, marks={}), spark=spark)
