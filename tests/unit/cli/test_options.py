import argparse
import shlex
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.jobs import JOBS, option_names, parse_options
from rebalance_core.cli.main import main
from rebalance_core.model.errors import UsageError
from tests.tree import TREE

GROW = str(TREE / "rebalance_core/bundled/scenarios/add-consumers.toml")
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
        (("simulate", "--output", "x"), "--input DIR, at least --events"),
        ((*MINIMAL, "--input-tables", "cat.db"), "--input-tables excludes --input"),
        ((*MINIMAL, "--where", "a = 1"), "--where requires --input-tables DB"),
        (("simulate", "--input-tables", "a b", "--output", "x"), "expected CATALOG.DATABASE"),
        (
            ("simulate", "--input-tables", "a.b", "--output", "x", "--run-on", "process"),
            "Spark reads --input-tables",
        ),
        (("plan", "--output", "x"), "pass --input DIR or --input-tables DB"),
        (
            ("propagate", "--input", "x", "--input-tables", "a.b", "--output", "x"),
            "--input and --input-tables exclude each other",
        ),
        (("publish", "--to", "cat.db"), "--run DIR is missing"),
        (("publish", "--run", "x"), "--to DB is missing"),
        (("publish", "--run", "x", "--to", "c.d", "--prefix", "a-"), "letters, digits and _ only"),
        (("publish", "--run", "x", "--to", "c.d", "--run-on", "process"), "Spark's catalogs"),
        (("publish", "--run", "x", "--to", "c.d", "--replace", "perid"), "did you mean period?"),
        (("publish", "--run", "x", "--to", "c.d", "--keep", "0d"), "from 1 to 10,000, e.g. 35d"),
        (("publish", "--to", "c.d", "--remove", "out/night"), "run_id of a run, hexadecimal"),
        (("publish", "--run", "x", "--to", "c.d", "--remove", "a1b2c3d4"), "leave out --run"),
        (("publish", "--to", "c.d", "--remove", "a1b2c3d4", "--keep", "3d"), "leave out --keep"),
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
def test_a_wrong_command_line_states_why(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_options(words, JOBS)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "--input", "in", "--output=~/x"),
        ("simulate", "--input=~/x", "--output", "out"),
        ("simulate", "--events=~ops/x.jsonl", "--output", "out"),
        ("audit", "--collection=~", "--output", "out"),
        ("audit", "--input", "in", "--output", "out", "--accepted=~/known.toml"),
        ("plan", "--input", "in", "--output", "out", "--scenario", "~/one.toml"),
        ("history", "--runs=~/runs", "--output", "out"),
        ("publish", "--run=~/night", "--to", "db"),
        ("demo", "~/demo"),
    ],
)
def test_a_home_that_no_shell_expanded_is_refused(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(None, words) == 2
    assert "the shell did not expand ~; write $HOME, or ./~" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert parse(*MINIMAL[:-1], "./~x").output == "./~x"


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


def options_of(name: str) -> dict[str, argparse.Action]:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    JOBS[name].options.add_to(parser)
    return parser._option_string_actions


@pytest.mark.parametrize("name", JOBS)
def test_help_states_what_each_option_is_and_what_happens_without_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for option, action in options_of(name).items():
        if option not in ("-h", "--help") and action.help != argparse.SUPPRESS:
            assert action.help, option
            assert "default" in action.help or "required" in action.help, option
    assert main(name, ["--help"]) == 0
    assert capsys.readouterr().out.count(f"\n  rebalance {name} ") == 2


@pytest.mark.parametrize("name", JOBS)
def test_examples_of_help_are_right(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TREE)
    for example in JOBS[name].examples:
        assert parse(name, *shlex.split(example)).argv[0] == name


def test_an_option_has_the_same_words_in_all_jobs() -> None:
    texts: dict[str, set[str | None]] = {}
    for name in JOBS:
        for option, action in options_of(name).items():
            if action.help != argparse.SUPPRESS:
                texts.setdefault(option, set()).add(action.help)
    common = ("--input-format", "--on-bad-rows", "--max-bad-share", "--first-seed", "--json")
    assert {option: len(texts[option]) for option in common} == dict.fromkeys(common, 1)


def test_explain_takes_options_that_mean_nothing_to_it_and_does_not_list_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("explain", "--ledger", "l", "--group", "g", "--queue", "t/b/0", "--at", "9")
    unused = ("--config", "f", "--set", "a=1", "--overwrite", "--break-lock", "--master", "local")
    assert parse(*words, *unused, "--run-on", "spark").queue == ("t", "b", 0)
    assert main("explain", ["--help"]) == 0
    listed = capsys.readouterr().out
    for option in (*unused, "--run-on"):
        assert not option.startswith("--") or option not in listed


def test_seeds_are_counted_as_futures_are_and_the_old_spelling_goes_on() -> None:
    words = ("plan", "--input", "i", "--output", "o", "--scenario", GROW)

    def seeds(*more: str) -> list[int]:
        return sorted({history.seed for history in parse(*words, *more).variants.histories})

    assert seeds("--seeds", "2", "--first-seed", "5") == [5, 6]
    assert seeds("--seed", "7", "--seed", "9") == [7, 9]
    assert options_of("plan")["--seed"].help == argparse.SUPPRESS
    with pytest.raises(UsageError, match="--first-seed -1: expected a whole number from 0"):
        seeds("--first-seed", "-1")
