"""The list of benches, and the page made of their results."""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.collection import LOGS, identify
from tests.bench.benches import BENCHES, FULL, LISTS, QUICK, Bench
from tests.bench.page import page
from tests.bench.report import MORE, Figure, Report, Table

NAMES = [bench.name for bench in BENCHES]


def options_of(module: str) -> set[str]:
    """The options of a bench: the keywords of its call of ``bench_main``."""
    spec = importlib.util.find_spec(module)
    assert spec is not None, f"there is no {module}"
    assert spec.origin is not None
    calls = [
        node
        for node in ast.walk(ast.parse(Path(spec.origin).read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "bench_main"
    ]
    assert len(calls) == 1, f"{module} calls bench_main {len(calls)} times"
    return {f"--{keyword.arg.replace('_', '-')}" for keyword in calls[0].keywords if keyword.arg}


@pytest.mark.parametrize("bench", BENCHES, ids=NAMES)
def test_a_bench_has_the_options_that_it_is_given(bench: Bench) -> None:
    given = {word for listed in LISTS for word in bench.arguments(listed) if word[:2] == "--"}
    assert given <= options_of(bench.module)


def test_every_kind_of_log_is_measured_on_recorded_lines() -> None:
    pytest.importorskip("pyspark")
    from tests.bench.passes.log_lines import PLACES, recorded_lines

    assert PLACES.keys() == set(LOGS)
    for kind, place in PLACES.items():
        file = identify(place, 1)
        assert file is not None
        assert file.kind == kind
        assert recorded_lines(kind).count(b"\n") > 10, f"no recording has lines of {kind}"


def test_names_are_distinct() -> None:
    assert len(set(NAMES)) == len(NAMES)


def results(load: float, *figures: Figure) -> dict[str, Any]:
    table = Table(("a", "b"), ((1234, 0.5), ("x", None)), "A note.")
    report = Report("A day", "What was run.", figures, (table,), ("Kafka: no registry.",))
    run = {
        "command": "python -m x", "date": "2026-01-01", "load before": load, "seconds": 2.0,
        "processor_seconds": 3.0, "peak_mib": {"jvm": 700}, "report": report.to_json(),
        "error": None,
    }  # fmt: skip
    return {"machine": {"cores": 2}, "benches": {"day": run}}


def test_the_page_is_honest() -> None:
    missed = Figure("speed", 3.0, better=MORE, target=15)
    text = page({QUICK: results(0.1, missed)})
    assert "| speed | 3 x | ≥ 15 x | **missed** |" in text
    assert "| 1,234 | 0.5 |\n| x |  |\n\nA note." in text
    assert "Left out: Kafka: no registry." in text
    assert ", load" not in text
    assert "- `make bench`: small-runs, fleets," in text
    assert "- `make bench-full`: small-runs, day," in text


def test_a_bench_that_failed_is_named() -> None:
    found = results(0.1)
    found["benches"]["day"] |= {"report": None, "error": "AssertionError: other rows"}
    assert "**day** of `make bench` failed: AssertionError: other rows" in page({QUICK: found})


def test_full_results_come_first_and_a_busy_machine_is_named() -> None:
    text = page(
        {
            QUICK: results(0.1, Figure("q", 1.0, target=2.0)),
            FULL: results(4.2, Figure("f", 1.0, target=2.0), Figure("without a target", 3.0)),
        }
    )
    assert "| f | 1 x | ≤ 2 x | met |" in text
    assert "| q |" not in text
    assert "without a target |" not in text
    assert ", load 4.2: " in text
    assert "- `make bench-full`: small-runs, fleets," in text
