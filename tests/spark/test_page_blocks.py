"""Blocks of the pages that are marked `on Spark` run in a session, page by page, in order."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rebalance_core.cli.main import main
from tests.docs.pages import Block, Folder, blocks_of, missing
from tests.docs.test_blocks import ENGLISH
from tests.tree import TREE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = {str(page.relative_to(TREE)): blocks_of(page) for page in ENGLISH}
PAGES = {
    name: blocks
    for name, blocks in ALL.items()
    if any("on Spark" in block.marks for block in blocks)
}


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("ready") / "rebalance-demo"
    assert main(None, ["demo", str(folder)]) == 0
    return {"rebalance-demo": folder}


def on_spark(block: Block | None) -> bool:
    return block is not None and "on Spark" in block.marks


def test_pages_have_such_blocks() -> None:
    marked = [block for blocks in PAGES.values() for block in blocks if on_spark(block)]
    assert len(PAGES) >= 3
    assert {block.kind for block in marked} == {"python"}
    shown = [b for b in PAGES["docs/tutorial-spark.md"] if b.kind == "data" and on_spark(b.follows)]
    assert len(shown) == 3


@pytest.mark.parametrize("name", PAGES)
def test_blocks_on_spark(
    name: str,
    ready: dict[str, Path],
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, ready, lambda: "".join(capsys.readouterr()))
    for block in PAGES[name]:
        if on_spark(block):
            code, _ = block.replaced(block.text)
            for word, there in {**ready, "out": tmp_path / "out"}.items():
                code = code.replace(f'"{word}', f'"{there}')  # the JVM has a folder of its own
            folder.read()
            folder.execute(replace(block, text=code, marks={}), spark=spark)
        elif block.kind == "data" and on_spark(block.follows):
            line = missing(block.text.splitlines(), folder.printed)
            assert line is None, f"{block.place}: not printed: {line!r}, but\n{folder.printed}"
