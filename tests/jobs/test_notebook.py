"""The planning notebook as a plain script: what `make notebook` executes, from a fresh clone.

One run, which its executed copy and docs/planning.md are held to; `make notebook` makes the copy
and the pictures again, the page is edited by hand.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tree import TREE

MOST_SECONDS = 900  # measured: 110 s of processor time
AVG, RING = "AVG", "CONSISTENT_HASH(virtual_nodes=200)"
COMMANDS = ("rebalance ", "$ ", "PLAN_INPUT=")
pytestmark = pytest.mark.unit


PLANNING = "capacity_planning"


def source_of(name: str) -> str:
    return (TREE / f"notebooks/{name}.py").read_text("utf-8")


def notebook(folder: Path, source: str, **environment: str) -> str:
    """What it prints."""
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=TREE,
        env=os.environ | {"MPLBACKEND": "Agg", "PLAN_PICTURES": str(folder)} | environment,
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def printed(folder: Path) -> str:
    return notebook(folder, source_of(PLANNING))


def test_it_runs_and_recommends(printed: str, folder: Path) -> None:
    answer = printed[printed.index("RECOMMENDATION:") :]
    assert "start 6 more consumers (9 in all), scale the topic to 16 queues first" in answer
    assert "keep AVG" in answer
    assert "moves 14 queues; no balanced result needs fewer than 10" in answer
    assert "CONSISTENT_HASH(virtual_nodes=10) does not fit" in answer
    drawn = {path.stem for path in folder.glob("*.png")}
    assert drawn == {
        "moves",
        "load",
        "ownership",
        "bands",
        "league",
        "what-if",
        "producers",
        "convergence",
        "worst-future",
        "rollouts",
    }
    assert "Switch it on, with clients of 5.1.4 or newer" in printed
    assert "DEPLOY: under AVG as many at once as the rest can carry" in printed
    assert "The order hardly matters" in printed


def test_the_executed_copy_is_of_this_notebook_and_printed_the_same(printed: str) -> None:
    check_copy(PLANNING, printed)


def check_copy(name: str, printed: str) -> None:
    """Its executed copy has its source, and printed the same."""
    assert printed == copied(name), "make notebook"
    source = source_of(name)
    for cell in executed(name)["cells"]:
        lines = "".join(cell["source"]).splitlines()
        if cell["cell_type"] == "markdown":
            lines = [f"# {line}".rstrip() for line in lines]
        assert "\n".join(lines) in source, "make notebook"


def executed(name: str) -> dict[str, Any]:
    """The executed copy of a notebook."""
    copy: dict[str, Any] = json.loads((TREE / f"notebooks/{name}.ipynb").read_text("utf-8"))
    return copy


def copied(name: str) -> str:
    """All that an executed copy shows as printed."""
    outputs = [output for cell in executed(name)["cells"] for output in cell.get("outputs", [])]
    return "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")


def page() -> str:
    text = (TREE / "docs/planning.md").read_text("utf-8")
    return text[: text.index("## What if something fails")]


def test_what_the_page_quotes_is_what_the_copy_shows() -> None:
    lines = {line.rstrip() for line in copied(PLANNING).splitlines()}
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page(), re.MULTILINE | re.DOTALL)
    quoted = [line for language, block in blocks if not language for line in block.splitlines()]
    of_a_run = [line for line in quoted if not line.startswith(COMMANDS)]
    assert len(of_a_run) >= 4
    assert [line for line in of_a_run if line.rstrip() not in lines] == []


def deploys(printed: str) -> dict[tuple[str, str], list[float]]:
    """By pace and strategy: moved, without an owner, held by two, read twice, settled after s."""
    row = re.compile(rf"^ *(\S.*?) +({AVG}|{re.escape(RING)})((?: +[0-9.]+){{5}})$", re.MULTILINE)
    return {(m[1], m[2]): [float(n) for n in m[3].split()] for m in row.finditer(printed)}


def test_the_deploys_of_the_page_are_those_it_prints(printed: str) -> None:
    found, text = deploys(printed), page()
    rows = [line.replace("*", "") for line in text.splitlines() if line.startswith("| ")]
    shown = {line.split(" | ")[0].removeprefix("| "): line for line in rows}
    paces = [pace for pace, name in found if name == AVG and ", " not in pace]
    assert len(paces) == 5
    for pace in paces:
        avg, ring = found[pace, AVG], found[pace, RING]
        figures = [float(cell.replace(",", "")) for cell in shown[pace].split("|")[2:-1]]
        # the page has whole numbers of what is printed with one decimal
        assert figures == pytest.approx([avg[1], avg[3], ring[1], ring[3]], abs=0.56)
    first, last, slow = (
        found[f"one a minute{order}", AVG] for order in (", first first", ", last first", "")
    )
    assert f"order of the client ids both cost {slow[1]:.0f} queue-seconds" in text
    assert {round(first[1]), round(last[1])} == {round(slow[1])}
    assert f"50 futures had settled after {slow[4]:.0f} s" in text
    halves = found["half a minute", AVG][0]
    assert (
        f"Twelve small steps move {slow[0]:.0f} queues, and two large ones move {halves:.0f}"
        in text
    )


TOPICS = ("orders", "payments", "refunds")
CHEAPER = {
    "FUTURES = 50\n": "FUTURES = 2\n",
    'producers/brown-out.toml")\n': (
        'producers/brown-out.toml")\n'
        "model = replace(model, groups=tuple(replace(one, clients=8) for one in model.groups))\n"
    ),
    "replace(group, clients=50,": "replace(group, clients=8,",
}
"""Fewer futures and producers of the examples that no group of one's own has a part in."""


def test_a_group_of_ones_own_is_distinguished_from_the_examples(tmp_path: Path) -> None:
    """Three topics of one queue, a consumer: nothing carries three times as much."""
    at = {"cluster": "c", "event_ms": 1_700_000_000_000}
    events: list[dict[str, Any]] = [{"event_type": "BROKER_UP", "broker_name": "a"}]
    events += [
        {
            "event_type": "TOPIC_CONFIG",
            "broker_name": "a",
            "topic": topic,
            "read_queue_nums": 1,
            "write_queue_nums": 1,
        }
        for topic in TOPICS
    ]
    events += [
        {
            "event_type": "CONSUMER_JOIN",
            "consumer_group": "mine",
            "client_id": f"10.0.0.{n}@1",
            "subscriptions": list(TOPICS),
        }
        for n in (1, 2)
    ]
    tables = tmp_path / "tables"
    tables.mkdir()
    lines = [json.dumps(at | {"sequence": n} | one) for n, one in enumerate(events)]
    (tables / "cluster_events.jsonl").write_text("\n".join(lines) + "\n")
    source, _, search = source_of(PLANNING).partition("\n# ## 9. Which deploy, then?\n")
    assert search
    for text, cheaper in CHEAPER.items():  # what they come to is the example's
        assert source.count(text) == 1
        source = source.replace(text, cheaper)
    printed = notebook(tmp_path, source, PLAN_INPUT=str(tables), PLAN_GROUP="mine")
    assert "None" not in printed.replace("None of", "")
    assert "EXAMPLE rebalance_core/bundled/producers/brown-out.toml, not mine: 4 brokers" in printed
    assert "EXAMPLE rebalance_core/bundled/demo/steady, not mine: 12 consumers" in printed
    assert "the topic " not in printed[: printed.index("EXAMPLE")]
