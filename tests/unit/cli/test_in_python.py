"""The names at the top of the package: what they take, what they say, what they show."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rebalance_core
from rebalance_core.model.errors import InputRefused, RebalanceError, UsageError
from tests.tree import TREE

DEMO = TREE / "rebalance_core/bundled/demo/join-leave/tables"
CALLS = (
    "simulate",
    "audit_collection",
    "plan",
    "what_if",
    "explain_queue",
    "read_tables",
    "sketch",
)
TWO = {"orders": {"broker-a": 8}}
NO_BROKERS: Any = {"orders": 8}


def test_the_names_are_functions_whatever_was_imported() -> None:
    """`rebalance_core.audit` and `rebalance_core.explain` are packages; no name may be one's."""
    for module in walk_packages(rebalance_core.__path__, "rebalance_core."):
        if not module.name.endswith("__main__") and ".spark" not in module.name:
            import_module(module.name)
    for name in CALLS:
        assert callable(getattr(rebalance_core, name)), name
        assert name in rebalance_core.__all__
    imported = re.compile(r"^from rebalance_core import (\([^)]*\)|.*)$", re.MULTILINE)
    notebook = (TREE / "notebooks/capacity_planning.py").read_text("utf-8")
    names = {name for found in imported.findall(notebook) for name in re.findall(r"\w+", found)}
    assert len(names) > 30
    for name in names:
        assert not inspect.ismodule(getattr(rebalance_core, name)), name
    with pytest.raises(AttributeError, match="has no attribute 'draw_nothing'"):
        _ = rebalance_core.draw_nothing


def test_notebooks_on_plans_import_the_package_alone() -> None:
    for name in ("capacity_planning", "the_morning_after"):
        lines = (TREE / f"notebooks/{name}.py").read_text("utf-8").splitlines()
        ours = [line for line in lines if re.match(r"(from|import) rebalance_core", line)]
        assert ours
        assert [line for line in ours if "rebalance_core." in line] == []


def test_the_package_alone_is_light() -> None:
    heavy = ("numpy", "pyarrow", "pandas", "rebalance_core.planning", "rebalance_core.cli")
    code = f"import sys, rebalance_core; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TREE
    )
    assert done.stdout == "[]\n"


def test_a_sketch_is_simulated_and_planned() -> None:
    drawn = rebalance_core.sketch(TWO, 3, "AVG_BY_CIRCLE", group="g")
    ledger = rebalance_core.simulate(drawn)
    held = [row for row in ledger.ownership.to_pylist() if row["topic"] == "orders"]
    assert sorted(row["queue_id"] for row in held) == list(range(8))
    assert len({row["client_id"] for row in held}) == 3
    assert {row["strategy"] for row in ledger.memberships.to_pylist()} == {"AVG_BY_CIRCLE"}
    planned = rebalance_core.plan(drawn, "add-consumers", ["AVG"])
    scenarios = {row["scenario"] for row in planned["plan_summary"].to_pylist()}
    assert {"baseline", "add-consumers"} <= scenarios
    named = rebalance_core.sketch(TWO, ["a", "b"])
    assert {r["client_id"] for r in rebalance_core.simulate(named).memberships.to_pylist()} == {
        "a",
        "b",
    }


def test_inputs_of_every_kind_give_the_same_ledger() -> None:
    folder = rebalance_core.read_tables(DEMO)
    expected = rebalance_core.simulate(DEMO).ownership.sort_by("from_ms").to_pylist()
    key = lambda row: tuple(map(str, row.values()))  # noqa: E731
    for given in (
        str(DEMO),
        folder,
        dict(folder),
        folder.to_pandas(),
        {name: table.to_pylist() for name, table in folder.items()},
    ):
        found = rebalance_core.simulate(given, group="order-service").ownership.to_pylist()
        assert sorted(found, key=key) == sorted(expected, key=key)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: rebalance_core.read_tables(7),
            "int is not an input; pass a folder, or a dict from table names to Arrow tables",
        ),
        (
            lambda: rebalance_core.read_tables({"cluster_event": []}),
            "no input table has the name 'cluster_event'; did you mean cluster_events?",
        ),
        (
            lambda: rebalance_core.simulate({"cluster_events": pd.DataFrame({"cluster": ["c"]})}),
            "event_ms",
        ),
        (lambda: rebalance_core.simulate({"cluster_events": "x"}), "cluster_events is a str"),
        (lambda: rebalance_core.read_tables(TREE / "docs"), "cluster_events is not in"),
        (lambda: rebalance_core.simulate(DEMO, grup="x"), "did you mean group?"),
        (
            lambda: rebalance_core.simulate(DEMO, group="ordr-service"),
            "did you mean order-service?",
        ),
        (lambda: rebalance_core.plan(DEMO, "ad-consumers"), "did you mean add-consumers?"),
        (lambda: rebalance_core.plan(DEMO, group="ordr-service"), "did you mean order-service?"),
        (lambda: rebalance_core.audit_collection(TREE / "nowhere"), "nowhere"),
        (lambda: rebalance_core.sketch(TWO, 0), "members = 0: pass an integer of at least 1"),
        (lambda: rebalance_core.sketch(NO_BROKERS, 2), "expected broker -> number of queues"),
        (
            lambda: rebalance_core.explain_queue(3, "g", "t/b/0", 1),
            "int is not a ledger; pass what simulate",
        ),
        (
            lambda: rebalance_core.explain_queue(rebalance_core.simulate(DEMO), "g", "t/b/0", 1),
            "the ledger has no such group",
        ),
        (
            lambda: rebalance_core.what_if(["a"], TWO, "AVG", {"scale_queue": TWO}),
            "did you mean scale_queues?",
        ),
        (
            lambda: rebalance_core.what_if(["a"], TWO, "AVG", {"queues": TWO, "scale_queues": TWO}),
            "scale_queues is queues; use only one of them",
        ),
    ],
)
def test_a_wrong_input_is_a_sentence(call: Any, said: str) -> None:
    with pytest.raises(RebalanceError) as raised:
        call()
    assert isinstance(raised.value, UsageError | InputRefused)
    assert said in str(raised.value)


def test_results_show_themselves() -> None:
    ledger = rebalance_core.simulate(DEMO)
    assert repr(ledger).startswith("<Ledger: epochs 7, ownership ")
    assert len(repr(ledger)) < 300
    html = ledger._repr_html_()
    assert "<details><summary>epochs: 7 rows</summary><table>" in html
    assert list(ledger.to_pandas()["epochs"]["epoch"]) == ledger["epochs"]["epoch"].to_pylist()
    with pytest.raises(AttributeError, match="did you mean ownership"):
        _ = ledger.ownershp
    hostile = rebalance_core.read_tables(
        {
            "cluster_events": pa.table(
                {"cluster": ["<b>"], "event_ms": [1], "sequence": [1], "event_type": ["<script>"]}
            )
        }
    )
    assert "<script>" not in hostile._repr_html_()


def test_a_queue_is_explained_from_memory_as_from_a_folder() -> None:
    answer = rebalance_core.explain_queue(
        rebalance_core.simulate(DEMO), "order-service", "OrderTopic/broker-a/3", 1795231740000
    )
    assert repr(answer).startswith("<Answer: OrderTopic/broker-a/3 of order-service")
    assert "The state: epoch " in str(answer)
    assert answer._repr_html_().startswith("<pre>OrderTopic/broker-a/3")


def test_an_audit_is_the_job_s() -> None:
    collection = TREE / "tests/recordings/data/nightly/collection"
    audit = rebalance_core.audit_collection(collection, group="notify")
    assert repr(audit).startswith("<Audit of DefaultCluster: FAILED: ")
    assert {row["consumer_group"] for row in audit.group_verdicts.to_pylist()} == {"notify"}
    rules = {row["rule_id"] for row in audit.findings.to_pylist()}
    assert {"DUPLICATE_CLIENT_ID", "DOUBLE_OWNER", "ORPHAN_QUEUES"} <= rules
    assert "DUPLICATE_CLIENT_ID" in audit._repr_html_()
    assert audit.page.startswith("<!doctype html>")
    assert "/tmp" not in audit.text  # a folder that is gone
    assert audit.text.splitlines()[1].endswith("03:51:42Z")
    answer = rebalance_core.explain_queue(
        audit, "notify", "orders/broker-a/0", audit.facts["end_ms"]
    )
    assert "172.17.0.2@notify" in str(answer)
    with pytest.raises(UsageError, match="--fail-on"):
        rebalance_core.audit_collection(collection, fail_on="SOMETIMES")


def test_a_what_if_states_what_its_invented_ids_decide() -> None:
    two = ["10.0.0.1@1#1", "10.0.0.2@1#1"]
    result = rebalance_core.what_if(two, TWO, "AVG", {"add_consumers": 1})
    assert result.moves == 3
    low, high = result.moves_range or (0, 0)
    assert (low, high) == (3, 5)  # at the end of the list 3 queues move, before the others 5
    assert "queues moved over 20 other sets of ids: 3 to 5" in str(result)
    assert repr(result) == "<WhatIf +1 consumer: 3 to 5 queues move, peak 3>"
    same = rebalance_core.what_if(two, TWO, "AVG", {"add_consumers": 1})
    assert same.moves_range == result.moves_range  # the seeds are fixed
    own = {"add_consumers": 1, "client_id_template": "web-{n}"}
    assert rebalance_core.what_if(two, TWO, "AVG", own).moves_range is None
    assert rebalance_core.what_if(two, TWO, "AVG", {"remove_consumers": 1}).moves_range is None
    # each set of ids is a pass of all members: of a large group none is tried
    many = [f"10.0.{n // 250}.{n % 250}@1#1" for n in range(60)]
    large = rebalance_core.what_if(
        many, {"orders": {"broker-a": 2_000}}, "AVG", {"add_consumers": 1}
    )
    assert large.moves_range is None
    scaled = {"scale_queues": {"orders": {"broker-a": 16}}}
    assert rebalance_core.what_if(two, TWO, "AVG", scaled).after.figures.group.queues == 16
