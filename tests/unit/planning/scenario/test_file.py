"""Scenario files: what they read, and every mistake in them."""

from pathlib import Path

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.planning.scenario.edit import read_moment
from rebalance_core.planning.scenario.file import parse_scenario, read_scenarios

GOOD = 'name = "n"\ndescription = "d"\n'


def mistakes(text: str) -> list[str]:
    found: list[str] = []
    parse_scenario(text, "f.toml", found)
    return found


def test_a_file_is_read() -> None:
    found: list[str] = []
    text = (
        GOOD + '[[edit]]\nkind = "lose_broker"\nat = "-2h"\nbroker = ["a", "b"]\nback_after = "5m"'
    )
    read = parse_scenario(text, "f.toml", found)
    assert found == []
    assert (read.name, read.description, read.places) == ("n", "d", ("f.toml:3",))
    (edit,) = read.edits
    assert (edit.at.at(7_200_000), edit.cluster) == (0, ("*",))
    assert vars(edit)["back_after"] == 300_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('name = "n"\n', "f.toml:1: description is missing"),
        ('description = "d"\nname = 5\n', "f.toml:2: name = 5: expected text"),
        (GOOD + 'titel = "x"\n', "f.toml:3: unknown key titel"),
        (GOOD + "edit = 5\n", "f.toml:3: edit must be tables"),
        (GOOD + "\n[[edit]]\nat = 'end'", "f.toml:4: kind is missing"),
        (GOOD + "[[edit]]\nkind = []", "f.toml:4: unknown kind [] (kinds: "),
        (GOOD + "[[edit]]\nkind = 'add_consumer'", "f.toml:4: unknown kind 'add_consumer'; did "
         "you mean add_consumers?"),
        (GOOD + "[[edit]]\nkind = 'lose_broker'", "f.toml:4: lose_broker needs broker"),
        (GOOD + "[[edit]]\nkind = 'lose_broker'\nbroker = 'a'\nbackafter = '5m'",
         "f.toml:6: unknown key backafter of lose_broker; did you mean back_after?"),
        (GOOD + "[[edit]]\nkind = 'lose_broker'\nbroker = 'a'\nhow = 'stoped'",
         "f.toml:6: how = 'stoped': expected one of stopped, closed, expired; did you mean "
         "stopped?"),
        (GOOD + "[[edit]]\nkind = 'lose_broker'\nbroker = 7",
         "f.toml:5: broker = 7: expected a string"),
        (GOOD + "[[edit]]\nkind = 'lose_broker'\nbroker = 'a'\nat = 'later'", "f.toml:6: at = "
         "'later': expected \"end\""),
        (GOOD + "[[edit]]\nkind = 'lose_broker'\nbroker = 'a'\nat = 2026-11-21T03:00:00",
         "the time zone is missing"),
        (GOOD + "[[edit]]\nkind = 'add_consumers'\ngroup = 'g'", "needs count or share"),
        (GOOD + "[[edit]]\nkind = 'add_consumers'\ngroup = ['[ab]', 'g[']\ncount = 1",
         "f.toml:5: group = ['[ab]', 'g[']: [ begins a set"),
        (GOOD + "[[edit]]\nkind = 'lose_broker'\nbroker = '[!]'", "[ begins a set"),
        (GOOD + "[[edit]]\nkind = 'add_consumers'\ngroup = 'g'\ncount = 1\nshare = 0.5",
         "f.toml:7: share excludes count"),
        (GOOD + "[[edit]]\nkind = 'add_consumers'\ngroup = 'g'\ncount = true", "whole number"),
        (GOOD + "[[edit]]\nkind = 'add_consumers'\ngroup = 'g'\ncount = 0", "from 1 to 10,000"),
        (GOOD + "[[edit]]\nkind = 'switch_strategy'\ngroup = 'g'\nstrategy = 'AVGG'",
         "f.toml:6: strategy = 'AVGG': unknown strategy"),
        (GOOD + "[[edit]]\nkind = 'rolling_restart'\ngroup = 'g'\nevery = 5", "a duration such as"),
    ],
)  # fmt: skip
def test_a_mistake_has_its_line_and_the_nearest_name(text: str, said: str) -> None:
    found = mistakes(text)
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize("glob", ["*", "a?", "[ab]-*", "[!a]", "[]]", "[[]x", "x]"])
def test_a_glob_that_is_one(glob: str) -> None:
    assert mistakes(GOOD + f"[[edit]]\nkind = 'lose_broker'\nbroker = '{glob}'") == []


def test_lines_behind_values_of_several_lines() -> None:
    text = (
        'name = "n"\ndescription = """\nbroker = 5\n[[edit]]\n"""\n'
        "[[edit]] # one\nkind = 'lose_broker'\nbroker = [\n  'a', # how = ]\n  'b',\n]\nhow = 'x'\n"
    )
    assert [line.partition(": ")[0] for line in mistakes(text)] == ["f.toml:12"]


def test_every_mistake_of_every_file_at_once(tmp_path: Path) -> None:
    one, two, three = tmp_path / "one.toml", tmp_path / "two.toml", tmp_path / "three.toml"
    one.write_text(
        "name = 1\nx = 2\n[[edit]]\nkind = 'lose_brokers'\n[[edit]]\nkind = 'new_topic'\n"
    )
    two.write_text("= 5")
    three.write_bytes(b"\xff")
    with pytest.raises(UsageError) as raised:
        read_scenarios([one, two, three, tmp_path / "four.toml"])
    lines = str(raised.value).splitlines()
    places = [line.removeprefix(f"{tmp_path}/").partition(": ")[0] for line in lines]
    assert places == [
        "one.toml:2",
        "one.toml:1",
        "one.toml:1",
        "one.toml:4",
        "one.toml:6",
        "one.toml:6",
        "two.toml",
        "three.toml",
        "four.toml",
    ]


def test_two_files_of_one_name(tmp_path: Path) -> None:
    for name in ("one.toml", "two.toml"):
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(UsageError, match=r"two\.toml:1: name = 'n' is already used in .*one\.toml"):
        read_scenarios([tmp_path / "one.toml", tmp_path / "two.toml"])


@pytest.mark.parametrize(("text", "ms"), [("end", 10_001), ("+1s", 11_000), ("-1s", 9_000), (7, 7)])
def test_moments(text: object, ms: int) -> None:
    assert read_moment(text).at(10_000) == ms


@pytest.mark.parametrize("value", ["noon", "+noon", 5.0, True, None, "2026-11-21"])
def test_what_is_no_moment(value: object) -> None:
    with pytest.raises(ValueError, match=r"expected|time zone"):
        read_moment(value)


@pytest.mark.parametrize("value", [1795231709, "1795231709"])
def test_a_moment_in_seconds_is_reported(value: object) -> None:
    with pytest.raises(ValueError, match="in seconds"):
        read_moment(value)
