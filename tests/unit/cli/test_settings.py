import re
from pathlib import Path

import pytest

from rebalance_core.cli.settings import SETTING_KEYS, resolve_settings
from rebalance_core.model.errors import UsageError
from tests.tree import TREE

EXAMPLE = TREE / "conf" / "rebalance.toml"


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def test_the_defaults_are_complete_and_the_example_repeats_them() -> None:
    assert resolve_settings() == resolve_settings([str(EXAMPLE)])
    assert all(key.rpartition(".")[2] in EXAMPLE.read_text("utf-8") for key in SETTING_KEYS)


def test_every_setting_is_read() -> None:
    code = (path.read_text("utf-8") for path in (TREE / "rebalance_core").rglob("*.py"))
    attributes = {name for text in code for name in re.findall(r"\.(\w+)", text)}
    assert [key for key in SETTING_KEYS if key.rpartition(".")[2] not in attributes] == []


def test_a_later_source_wins(tmp_path: Path) -> None:
    first = write(tmp_path, "a.toml", "max_bad_share = 0.1\n[summary]\nworst_groups = 1\n")
    second = write(tmp_path, "b.toml", "max_bad_share = 0.2\n")
    settings = resolve_settings([first, second])
    assert (settings.max_bad_share, settings.summary.worst_groups) == (0.2, 1)
    settings = resolve_settings([first, second], ["max_bad_share=0.3"])
    assert settings.max_bad_share == 0.3
    settings = resolve_settings([first], ["max_bad_share=0.3"], {"max_bad_share": "0.4"})
    assert settings.max_bad_share == 0.4


def test_a_byte_order_mark_of_windows_is_no_mistake(tmp_path: Path) -> None:
    marked = write(tmp_path, "a.toml", "\ufeffmax_bad_share = 0.1\n")
    assert resolve_settings([marked]).max_bad_share == 0.1


def test_an_option_that_was_not_given_changes_nothing() -> None:
    assert resolve_settings(options={"on_bad_rows": None}) == resolve_settings()


def test_set_reads_values_as_toml_and_bare_words_as_text() -> None:
    settings = resolve_settings([], ["on_bad_rows=fail", "include_retry_topics=false"])
    assert (settings.on_bad_rows, settings.include_retry_topics) == ("fail", False)
    assert resolve_settings([], ['on_bad_rows="fail"', "spark.shuffle_partitions=7"]).spark == (
        settings.spark.__class__(7)
    )


@pytest.mark.parametrize(
    ("assignment", "said"),
    [
        ("max_bad_shares=1", "did you mean max_bad_share?"),
        ("max_bad_share=1.5", "expected a number from 0 to 1"),
        ("max_bad_share=nan", "expected a number from 0 to 1"),
        ("max_bad_share=true", "expected a number from 0 to 1"),
        ("include_retry_topics=1", "expected true or false"),
        ("on_bad_rows=quarantin", "did you mean quarantine?"),
        ("limits.max_queue_nums=0", "from 1 to 2147483647"),
        ("limits.max_queue_nums=1.0", "from 1 to 2147483647"),
        ("limits=3", "is a section, not a setting"),
        ("worst_groups", "expected KEY=VALUE"),
    ],
)
def test_a_wrong_setting_states_what_is_valid(assignment: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_settings([], [assignment])
    assert said in str(caught.value)


def test_all_mistakes_of_all_places_at_once(tmp_path: Path) -> None:
    bad = write(tmp_path, "bad.toml", "colour = 1\n[limit]\nmax_queue_nums = 2\n")
    broken = write(tmp_path, "broken.toml", "a = = 1")
    with pytest.raises(UsageError) as caught:
        resolve_settings([bad, broken, str(tmp_path / "none.toml")], ["x=1"], {"on_bad_rows": "y"})
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert f"{bad}: unknown key limit; did you mean limits?" in "\n".join(lines)
