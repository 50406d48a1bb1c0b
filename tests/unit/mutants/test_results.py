"""What a run remembers, and when a mutant has to run again."""

from pathlib import Path

import pytest

from tests.mutants import __main__ as driver
from tests.mutants import equivalents, report, runner
from tests.mutants import results as kept
from tests.mutants.packages import PACKAGES
from tests.mutants.sites import Site, sites_of
from tests.tree import TREE

SOURCE = "def f(a):\n    return a + 1\n"
FILE = "rebalance_core/model/f.py"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in ((FILE, SOURCE), ("tests/test_f.py", "")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(kept, "TREE", tmp_path)
    monkeypatch.setattr(report, "TREE", tmp_path)
    return tmp_path


def plus() -> Site:
    return next(site for site in sites_of(FILE, SOURCE.encode()) if site.before == "+")


def results(tree: Path) -> kept.Results:
    return kept.Results(tree / "results.jsonl")


@pytest.mark.parametrize("status", ["killed", "survived"])
def test_a_result_outlives_the_run(tree: Path, status: str) -> None:
    assert results(tree).of(plus()) is None
    results(tree).add(plus(), status, "", 1.0)
    row = results(tree).of(plus())
    assert row is not None
    assert row["status"] == status


@pytest.mark.parametrize(("status", "known"), [("killed", True), ("survived", False)])
def test_new_tests_ask_the_survivors_again(tree: Path, status: str, known: bool) -> None:
    results(tree).add(plus(), status, "", 1.0)
    (tree / "tests" / "test_f.py").write_text("def test_f(): ...\n", encoding="utf-8")
    assert (results(tree).of(plus()) is not None) is known


def test_a_changed_file_is_mutated_again(tree: Path) -> None:
    results(tree).add(plus(), "killed", "", 1.0)
    (tree / FILE).write_text(SOURCE + "\n", encoding="utf-8")
    assert results(tree).of(plus()) is None


def test_the_report_names_the_survivors(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [(plus(), {"status": "survived"}), (plus(), {"status": "killed"})]
    assert report.write_report(tree / "report.md", rows, sites=9, seed=1) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"survived: {FILE}:2 arithmetic: + -> -: no test notices"
    assert printed[-1] == "2 mutants, 1 killed, 1 survived: 50.0 %"
    assert f"`{FILE}:2` (arithmetic): `+ -> -`" in (tree / "report.md").read_text("utf-8")


def test_every_equivalent_is_a_mistake_that_can_be_made() -> None:
    paths = {path for path, *_ in equivalents.EQUIVALENT}
    sites = [site for path in paths for site in sites_of(path, (TREE / path).read_bytes())]
    known = {equivalents.why_equivalent(site) for site in sites} - {None}
    assert known == set(equivalents.EQUIVALENT.values())


def test_a_change_of_the_code_changes_the_sample_only_there() -> None:
    def shown(path: str, source: str) -> set[tuple[str, str]]:
        sites = sites_of(path, source.encode())
        return {(site.text, site.operator) for site in driver.sample_of(sites, 10, seed=1)}

    lines = [f"x{i} = a{i} + {i}" for i in range(20)]
    before = shown("rules/m.py", "\n".join(lines))
    assert len(before) == 10
    assert shown("protocol/m.py", "\n".join(["y = b", *lines])) == before
    assert len(shown("rules/m.py", "\n".join(lines[1:])) & before) >= 8


def test_the_tests_of_every_package_are_there() -> None:
    for package, stages in PACKAGES.items():
        assert (TREE / package).is_dir()
        for stage in range(len(stages)):
            tests = runner.tests_of(f"{package}/none.py", stage, TREE)
            assert tests
            assert [test for test in tests if not (TREE / test).is_file()] == []


def test_the_test_of_the_same_name_comes_first() -> None:
    first, *_ = runner.tests_of("rebalance_core/protocol/start_offset.py", 0, TREE)
    assert first == "tests/unit/protocol/test_start_offset.py"
