"""Each block of commands of every page runs and prints what is shown, or says why it is not run."""

import sys
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from tests.docs.pages import PAGES, Block, Folder, blocks_of, missing
from tests.tree import TREE

ENGLISH = [page for page in PAGES if not page.name.endswith(".zh.md")]
"""Pages in Chinese have the same blocks (`test_chinese`)."""
DEMO = "rebalance_core/bundled/demo/join-leave/tables"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Outputs that pages begin with, made once."""
    folder = tmp_path_factory.mktemp("ready")
    assert main(None, ["simulate", "--input", str(TREE / DEMO), "--output", f"{folder}/demo"]) == 0
    assert main(None, ["demo", str(folder / "rebalance-demo")]) == 0
    (folder / "runs").mkdir()
    (folder / "runs/2026-11-21").symlink_to(folder / "rebalance-demo/audit")
    return {
        "runs": folder / "runs",
        "out/demo": folder / "demo",
        "rebalance-demo": folder / "rebalance-demo",
        "tables": TREE / DEMO,
    }


@pytest.mark.usefixtures("registered_plugins")
@pytest.mark.parametrize("page", ENGLISH, ids=lambda page: str(page.relative_to(TREE)))
def test_blocks_of_a_page(
    page: Path,
    ready: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = blocks_of(page)
    if not any(block.runs or block.label in ("toml", "json") for block in blocks):
        return
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, ready, lambda: "".join(capsys.readouterr()))
    folder.write_files(blocks)
    monkeypatch.setitem(sys.modules, "__main__", folder.module)
    wrong = [message for block in blocks if (message := what_is_wrong(block, folder))]
    assert not wrong, "\n".join(wrong)


def what_is_wrong(block: Block, folder: Folder) -> str | None:
    try:
        if block.kind == "data" and block.label == "" and block.follows and block.follows.runs:
            line = missing(block.text.splitlines(), folder.printed)
            return line and f"{block.place}: {block.follows.place} does not print {line!r}"
        folder.read()
        folder.run(block)
    except (Exception, SystemExit) as error:
        return f"{block.place}: {type(error).__name__}: {error}"
    return None


PAGE = Path("page.md")


def test_pages_have_blocks_of_each_kind() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page)]
    assert {"python", "console", "sh", "data"} == {block.kind for block in blocks}
    left_out = [block for block in blocks if "not run" in block.marks]
    assert len(left_out) < sum(block.runs for block in blocks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```\nrebalance simulate --input nowhere --output out/x\n```\n", "ended with 4, not 0"),
        ("```\n$ rebalance --version\nrebalance 99\n```\n", "does not print 'rebalance 99'"),
        ("```python\nprint(1)\n```\n\n```\n2\n```\n", "does not print '2'"),
        ("```python\nassert 1 == 2\n```\n", "AssertionError"),
        ("```sh\necho one | grep two\n```\n", "ended with 1, not 0"),
        ("```toml\na = [\n```\n", "TOMLDecodeError"),
        ("<!-- run: exit=3 -->\n```\nrebalance --version\n```\n", "ended with 0, not 3"),
    ],
)
def test_a_wrong_block_is_found(
    text: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path, {}, lambda: "".join(capsys.readouterr()))
    wrong = [what_is_wrong(block, folder) for block in blocks_of(PAGE, text)]
    assert said in str(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "<!-- not run: -->\n```\nmake\n```\n",
        "<!-- not run: why -->\nText.\n",
        "<!-- runs -->\n```\nls\n```\n",
    ],
)
def test_a_mark_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="mark"):
        blocks_of(PAGE, text)


def test_commands_and_what_they_print() -> None:
    text = "```\n$ rebalance explain \\\n    --at 1\none\n$ rebalance --version\n```\n"
    (block,) = blocks_of(PAGE, text)
    assert list(block.calls()) == [
        ("rebalance explain --at 1", ["one"]),
        ("rebalance --version", []),
    ]
    assert missing(["a", "…", "c … e"], "a\nb\nc d e\n") is None
    assert missing(["c", "a"], "a\nb\nc\n") == "a"
