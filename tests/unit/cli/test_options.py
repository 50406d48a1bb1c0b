import argparse
from typing import Any

import pytest

from rebalance_core.cli.jobs import JOBS, option_names, parse_options
from rebalance_core.cli.main import main
from rebalance_core.model.errors import UsageError

MINIMAL = ("simulate", "--input", "in", "--output", "out")


def parse(*words: str) -> Any:
    return parse_options(words, JOBS)[1]


def test_every_pinned_option_of_simulate_is_there() -> None:
    pinned = """--config --set --json --dry-run --overwrite --debug --master --break-lock --events
        --consumer-groups --queue-offsets --committed-offsets --input --output --engine --strategy
        --on-bad-rows --max-bad-share --group --from --to --input-format"""
    assert set(pinned.split()) <= set(option_names(JOBS["simulate"]))


def test_the_least_that_is_needed() -> None:
    options = parse(*MINIMAL)
    assert (options.input, options.output, options.engine) == ("in", "out", "vectorized")
    assert options.argv == MINIMAL


def test_values_are_read() -> None:
    words = ("--from", "5", "--to=9", "--input-format", "jsonl", "--set", "a=1", "--set", "b=2")
    options = parse(*MINIMAL, *words)
    assert (options.from_ms, options.to_ms, options.input_format) == (5, 9, "json")
    assert options.set == ("a=1", "b=2")
    options = parse(*MINIMAL, "--from", "2026-11-21T03:28:35.717Z", "--to=1795231799999")
    assert (options.from_ms, options.to_ms) == (1795231715717, 1795231799999)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("simulat",), "did you mean simulate?"),
        ((), "name a job"),
        (("simulate", "--inptu", "x"), "did you mean --input?"),
        (("simulate", "--over", "--input", "x"), "unknown option --over"),
        (("simulate", "--output", "x"), "--input DIR, or at least --events"),
        (("simulate", "--input", "x"), "--output DIR is missing"),
        ((*MINIMAL, "--events", "e"), "exclude each other"),
        ((*MINIMAL, "--engine", "referense"), "did you mean reference?"),
        ((*MINIMAL, "--input-format", "avro"), "one of json, jsonl, csv, parquet"),
        ((*MINIMAL, "--from", "noon"), "epoch milliseconds"),
        ((*MINIMAL, "--from", "9", "--to", "9"), "is not after"),
        ((*MINIMAL, "--to", "1795231715"), "--to 1795231715: that is in seconds"),
        ((*MINIMAL, "--from", "2026-11-21 03:30"), "the time zone is missing"),
        ((*MINIMAL, "--group"), "expected one argument"),
    ],
)
def test_a_wrong_command_line_says_why(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(words, JOBS)
    assert said in str(caught.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        parse("simulate", "--from", "x", "--engine", "y")
    assert len(str(caught.value).splitlines()) == 4


def test_usage_errors_end_with_2_and_leave_stdout_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main("simulate", ["--inptu", "x"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "did you mean --input?" in printed.err


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["simulate", "--help"]])
def test_help_ends_with_0(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(None, words) == 0
    assert "rebalance" in capsys.readouterr().out


def test_no_job_shadows_a_common_option() -> None:
    for job in JOBS.values():
        parser = argparse.ArgumentParser(allow_abbrev=False)
        job.options.add_to(parser)  # argparse refuses an option that is there already
        assert {"--set", "--config", "--json"} <= parser._option_string_actions.keys()
