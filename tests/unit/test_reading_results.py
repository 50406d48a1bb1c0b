"""docs/reading-results.md: its examples print what the page shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from tests.tree import TREE

PAGE = (TREE / "docs/reading-results.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results that the page reads."""
    folder = tmp_path_factory.mktemp("results")
    (command,) = re.findall(r"`rebalance (simulate [^`]*)`", PAGE)
    words = command.replace(
        "rebalance_core/bundled/demo/join-leave",
        str(TREE / "rebalance_core/bundled/demo/join-leave"),
    )
    words = words.replace("out/demo", str(folder / "out/demo"))
    assert main(None, words.split()) == 0
    return folder


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") == 2


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_prints_what_the_page_shows(
    code: str, printed: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in re.findall(r"^import (\w+)", code, re.MULTILINE):
        pytest.importorskip(package)
    monkeypatch.chdir(results)
    with contextlib.redirect_stdout(io.StringIO()) as found:
        exec(code, {})
    assert found.getvalue().strip() == printed.strip()
