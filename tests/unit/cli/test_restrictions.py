"""A restriction that leaves nothing is told: a mistyped name is no group that is healthy."""

from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from tests.tree import TREE

TABLES = str(TREE / "tests/recordings/data/join-leave/tables")


@pytest.mark.parametrize("job", ["simulate", "plan", "propagate"])
@pytest.mark.parametrize(
    ("words", "code"), [(("--group", "order-servic"), 4), (("--group", "order-*"), 0), ((), 0)]
)
def test_a_pattern_that_no_group_matches(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    job: str,
    words: tuple[str, ...],
    code: int,
) -> None:
    output = str(tmp_path / "out")
    few = ("--seeds", "2") if job == "propagate" else ()
    given = [job, "--input", TABLES, "--output", output, *words, *few]
    for dry in (["--dry-run"], []):
        assert main(None, [*given, *dry]) == code
        printed = "".join(capsys.readouterr())
        assert ("did you mean order-service?" in printed) == bool(code)


def test_times_that_leave_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--input", TABLES, "--output", str(tmp_path / "out"), "--to", "2001-01-01T00:00:00Z"]
    assert main("simulate", words) == 0
    assert "--to 978307200000: no input row matches" in capsys.readouterr().err


@pytest.mark.parametrize(("topic", "warned"), [("OrderTopic", False), ("orderTopic", True)])
def test_rates_of_other_queues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], topic: str, warned: bool
) -> None:
    rates = tmp_path / "queue_rates.csv"
    rates.write_text(
        "cluster,topic,broker_name,queue_id,from_ms,messages_per_second\n"
        f"DefaultCluster,{topic},broker-a,0,0,5.0\n"
    )
    words = ["--input", TABLES, "--queue-rates", str(rates), "--output", str(tmp_path / "out")]
    assert main("plan", words) == 0
    assert ("no rate matches a queue that a member holds" in capsys.readouterr().err) == warned
