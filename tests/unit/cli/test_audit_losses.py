"""`audit --losses`: the worst single loss of each group, from a plan, on the audit's page."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.process.plan_losses import suffering, worst_of_groups
from tests.tree import TREE

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")
QUICK = ("--set", "plan.futures=2")


def plan(output: Path, *words: str) -> Path:
    assert main("plan", ["--input", STEADY, "--output", str(output), *QUICK, *words]) == 0
    return output


def audit(output: Path, *words: object) -> int:
    return main("audit", ["--input", STEADY, "--output", str(output), *map(str, words)])


def shown(output: Path) -> list[list[str]]:
    """The cells of the table on the page."""
    page = (output / "report.html").read_text("utf-8")
    section = re.search(r'<section id="losses">.*?</section>', page, re.DOTALL)
    if section is None:
        return []
    rows = re.findall(r"<tr><td>(.*?)</td></tr>", section[0])
    return [
        [
            unescape(re.sub(r"<[^>]*>", "", cell)).strip()
            for cell in re.split(r"</td><td[^>]*>", row)
        ]
        for row in rows
    ]


def test_the_page_has_the_worst_loss_of_each_group_of_the_plan(tmp_path: Path) -> None:
    planned = plan(tmp_path / "plan", "--scenario", "lose-each-broker")
    losses = pq.read_table(planned / "losses").to_pylist()
    worst = sorted((row for row in losses if row["rank"] == 1), key=suffering)
    assert len(losses) == 4
    assert audit(tmp_path / "audit", "--losses", planned) == 3
    assert shown(tmp_path / "audit") == [
        [
            row["consumer_group"],
            f"broker {row['object']}",
            f"{row['orphaned_before']} → {row['orphaned']}",
            f"{row['left_unread']:,}",
            f"{row['no_owner_s']:,.1f}",
            str(row["moved"]),
            str(row["peak_queues"]),
            str(row["idle"]),
        ]
        for row in worst
    ]


def test_without_a_plan_the_page_has_no_such_table(tmp_path: Path) -> None:
    assert audit(tmp_path / "audit") == 3
    assert shown(tmp_path / "audit") == []


def test_members_are_redacted_as_elsewhere(tmp_path: Path) -> None:
    scenario = tmp_path / "each-member.toml"
    scenario.write_text(
        'name = "members"\ndescription = "Each member."\n\n[[edit]]\nkind = "remove_consumers"\n'
        'each = "member"\nat = "+10m"\ngroup = "checkout"\n',
        "utf-8",
    )
    planned = plan(tmp_path / "plan", "--scenario", str(scenario), "--set", "plan.futures=0")
    words = ("--losses", planned, "--redact-clients", "--set", "audit.redact_salt='s'")
    assert audit(tmp_path / "audit", *words) == 3
    (group, lost, *_), _ = shown(tmp_path / "audit")
    client_ids = {row["object"] for row in pq.read_table(planned / "losses").to_pylist()}
    assert (group, len(client_ids)) == ("checkout", 12)
    assert lost.startswith("member ")
    page = (tmp_path / "audit" / "report.html").read_text("utf-8")
    assert [client_id for client_id in client_ids if client_id in page] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--scenario", "add-consumers"), 4, "has no losses under the groups' own strategies"),
        (("--scenario", "lose-each-broker", "--strategy", "AVG"), 4, "has no losses under the gr"),
    ],
)
def test_a_plan_without_losses_of_the_recorded_groups_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, said: str
) -> None:
    planned = plan(tmp_path / "plan", *words)
    assert audit(tmp_path / "audit", "--losses", planned) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "audit" / "findings").exists()


def test_what_is_no_plan_or_was_changed_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert audit(tmp_path / "audit", "--losses", STEADY) == 2
    assert f"--losses {STEADY}: there is no folder losses in it" in capsys.readouterr().err
    planned = plan(tmp_path / "plan", "--scenario", "lose-each-broker")
    (part,) = (planned / "losses").glob("*.parquet")
    pq.write_table(pq.read_table(part).slice(1), part)
    assert audit(tmp_path / "audit", "--losses", planned) == 4
    assert "losses" in capsys.readouterr().err


def test_of_equal_losses_the_first_object_is_named() -> None:
    row: Any = {
        "cluster": "c",
        "consumer_group": "g",
        "strategy": "recorded",
        "orphaned": 1,
        "orphaned_before": 0,
        "left_unread": None,
        "no_owner_s": None,
        "peak_queues": 2,
        "moved": 3,
    }
    rows = [row | {"object": "b"}, row | {"object": "a"}, row | {"object": "c", "orphaned": 0}]
    rows.append(row | {"consumer_group": "h", "object": "c", "orphaned": 2})
    found = [(each["consumer_group"], each["object"]) for each in worst_of_groups(rows)]
    assert found == [("h", "c"), ("g", "a")]
    # a group without a member has lost nothing
    offline = row | {"consumer_group": "o", "object": "a", "orphaned": 34, "orphaned_before": 40}
    rows.append(offline | {"moved": 0, "peak_queues": 0})
    assert [each["consumer_group"] for each in worst_of_groups(rows)] == ["h", "g", "o"]
