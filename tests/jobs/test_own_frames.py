"""The notebook of the SQL functions as a plain script, in a process with a JVM of its own."""

from pathlib import Path

from tests.jobs.test_notebook import check_copy, notebook, source_of

NAME = "own_frames"


def test_it_says_what_simulate_says_and_so_does_its_copy(tmp_path: Path) -> None:
    printed = notebook(tmp_path, source_of(NAME))
    assert "44 rows, 0 differ\n26 rows, 0 differ" in printed
    assert "AVERAGE: unknown strategy: 'AVERAGE'" in printed
    assert "CONSISTENT_HASH(virtual_nodes=200): " in printed
    check_copy(NAME, printed)
