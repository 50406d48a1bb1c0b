"""`rebalance autoscale`: what it writes and prints, what it refuses, and budgets."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.cli.main import main
from tests.plans import rows_of
from tests.tree import TREE

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")
BEGIN_MS = 1_795_231_200_000
MINUTE_MS = 60_000


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> str:
    rows = list(rows)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w") as file:
        table = csv.DictWriter(file, names)
        table.writeheader()
        table.writerows(rows)
    return str(path)


def arrivals(rates: Iterable[float], topic: str = "Checkout", **more: Any) -> list[dict[str, Any]]:
    return [
        {
            "from_ms": BEGIN_MS + place * MINUTE_MS,
            "to_ms": BEGIN_MS + (place + 1) * MINUTE_MS,
            "topic": topic,
            "messages_per_second": rate,
            **more,
        }
        for place, rate in enumerate(rates)
    ]


SALE = [*[300.0] * 2, *[1_500.0] * 4, *[300.0] * 4]


def scale(folder: Path, *words: str, policies: tuple[str, ...] = ("hpa", "by-rate")) -> int:
    given = ["--policy", *policies, "--seeds", "2", "--output", str(folder / "o"), *words]
    return main(None, ["autoscale", "--input", STEADY, *given])


def test_policies_are_compared_and_the_chosen_one_is_yaml(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = write(tmp_path / "arrivals.csv", arrivals(SALE))
    words = ("--arrivals", rates, "--service-time", "100")
    assert scale(tmp_path, *words, "--json") == 0
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    out = tmp_path / "o"
    rows = {(r["consumer_group"], r["policy"]): r for r in rows_of(out, "policy_summary")}
    assert set(rows) == {(g, p) for g in ("checkout", "ledger") for p in ("hpa", "by-rate")}
    by_lag, by_rate = rows["checkout", "hpa"], rows["checkout", "by-rate"]
    (chosen,) = (row for row in (by_lag, by_rate) if row["chosen"])
    assert chosen["regret"] == 0
    assert chosen["price"] == min(by_lag["price"], by_rate["price"])
    assert by_lag["moves"] > 0 < by_rate["moves"]
    assert by_lag["lag_max"] > 0 < by_rate["lag_max"]
    assert (by_lag["from_ms"], by_lag["to_ms"]) == (BEGIN_MS, BEGIN_MS + 10 * MINUTE_MS)
    assert rows["ledger", "hpa"]["reason"] == "arrivals has no row of Ledger"
    assert rows["ledger", "hpa"]["pod_hours"] is None
    steps = rows_of(out, "scaling_steps")
    assert {s["seed"] for s in steps} == {0, 1}
    assert all(s["from_replicas"] != s["to_replicas"] for s in steps)
    assert sum(s["policy"] == "hpa" for s in steps) == 2 * by_lag["steps"]
    points = rows_of(out, "lag_over_time")
    assert len(points) == 2 * 10  # two policies, the first future, a point a minute
    yaml = (out / "scaler.yaml").read_text()
    assert "kind: HorizontalPodAutoscaler" in yaml
    assert f"policy {chosen['policy']!r} of rebalance autoscale" in yaml
    assert "a member reads 200 messages a second" in yaml
    assert (out / "scaling.svg").read_text().startswith("<?xml")
    assert set(facts["files"]) == {"scaler.yaml", "scaling.svg"}
    assert scale(tmp_path, *words, "--overwrite") == 0
    said = capsys.readouterr().out
    assert f"* {chosen['policy']}" in said
    assert "UNKNOWN: arrivals has no row of Ledger" in said


def test_tables_lie_in_the_input_and_have_intervals(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for file in Path(STEADY).iterdir():
        (folder / file.name).symlink_to(file)
    rows = arrivals(SALE, high=2_000.0)
    write(folder / "arrivals.csv", [{**r, "low": r["messages_per_second"] / 2} for r in rows])
    service = {"consumer_group": "checkout", "service_ms": 100, "threads": 20}
    service |= {"service_ms_p99": 300}
    write(folder / "capacity.csv", [service])
    out = tmp_path / "o"
    words = ["autoscale", "--input", str(folder), "--policy", "hpa", "--seeds", "1"]
    assert main(None, [*words, "--group", "checkout", "--output", str(out)]) == 0
    lags = {row["world"]: row["lag_mean"] for row in rows_of(out, "policy_summary")}
    assert set(lags) == {"likely", "low", "high"}
    assert lags["low"] < lags["likely"] < lags["high"]


def recorded(replicas: Iterable[int | None], group: str = "checkout") -> list[dict[str, Any]]:
    return [
        {"consumer_group": group, "at_ms": BEGIN_MS + place * MINUTE_MS, "replicas": count}
        for place, count in enumerate(replicas)
    ]


def test_the_recorded_replicas_stand_beside_the_policies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = arrivals([5.0] * 10, "Ledger")
    rates = write(tmp_path / "arrivals.csv", [*arrivals(SALE), *ledger])
    was = [*recorded([2, 2, 2, 5, 5, 8, 8, 8, 4, 4]), *recorded([3] * 10, "ledger")]
    words = ("--arrivals", rates, "--service-time", "100", "--recorded")
    assert scale(tmp_path, *words, write(tmp_path / "was.csv", was)) == 0
    out = tmp_path / "o"
    rows = {(r["consumer_group"], r["policy"]): r for r in rows_of(out, "policy_summary")}
    assert {policy for _, policy in rows} == {"hpa", "by-rate", "recorded"}
    row = rows["checkout", "recorded"]
    assert row["pod_hours"] == pytest.approx((3 * 2 + 2 * 5 + 3 * 8 + 2 * 4) / 60)
    assert (row["steps"], row["reversals"], row["futures"]) == (3, 1, 2)
    least = min(rows["checkout", policy]["price"] for policy in ("hpa", "by-rate"))
    assert row["regret"] == pytest.approx(row["price"] - least)
    assert row["on_front"] is not None
    assert rows["ledger", "recorded"]["pod_hours"] == pytest.approx(0.5)
    together = rows[None, "recorded"]["pod_hours"]
    assert together == pytest.approx(row["pod_hours"] + 0.5)
    assert not any(row["chosen"] for (_, policy), row in rows.items() if policy == "recorded")
    steps = [s for s in rows_of(out, "scaling_steps") if s["policy"] == "recorded"]
    first = [(s["at_ms"], s["from_replicas"], s["to_replicas"]) for s in steps if not s["seed"]]
    assert first == [
        (BEGIN_MS + minute * MINUTE_MS, before, after)
        for minute, before, after in ((3, 2, 5), (5, 5, 8), (8, 8, 4))
    ]
    assert all(step["lag"] is step["rate"] is None for step in steps)
    assert "\n  recorded " in capsys.readouterr().out


def test_recorded_pods_start_as_those_of_the_first_policy(tmp_path: Path) -> None:
    for name, median in (("slow", "120s"), ("quick", "5s")):
        text = f'name = "{name}"\nstart = {{median = "{median}", spread = "1s"}}\n'
        (tmp_path / f"{name}.toml").write_text(f"{text}[lag]\ntarget = 1000\n")
    rates = write(tmp_path / "arrivals.csv", arrivals(SALE))
    was = write(tmp_path / "was.csv", recorded([2, 2, 2, 8, 8, 8, 8, 8, 4, 4]))
    words = ("--arrivals", rates, "--service-time", "100", "--group", "checkout")
    lag = {}
    for names in (("slow", "quick"), ("quick", "slow")):
        files = tuple(str(tmp_path / f"{name}.toml") for name in names)
        assert scale(tmp_path, *words, "--recorded", was, "--overwrite", policies=files) == 0
        found = {r["policy"]: r for r in rows_of(tmp_path / "o", "policy_summary")}
        lag[names[0]] = found["recorded"]["lag_mean"]
    # six pods that join 115 s later, each with 200 messages a second to read
    assert lag["slow"] > 2 * lag["quick"]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (recorded([2, 2, None, 4]), "from 2026-11-21 03:22:00Z to 2026-11-21 03:23:00Z"),
        (recorded([2, 2, 2, 4]), "from 2026-11-21 03:24:00Z to 2026-11-21 03:30:00Z"),
        (recorded([2] * 10)[2:], "from 2026-11-21 03:20:00Z to 2026-11-21 03:22:00Z"),
        (
            [r for n, r in enumerate(recorded([2] * 12)) if not 2 < n < 6],
            "from 2026-11-21 03:23:00Z to 2026-11-21 03:26:00Z",
        ),
        (recorded([2] * 10, "another"), "recorded_scaling has no replicas of it"),
        (recorded([None] * 10), "recorded_scaling has no replicas of it"),
    ],
)
def test_unknown_replicas_are_no_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], why: str
) -> None:
    rates = write(tmp_path / "a.csv", arrivals(SALE))
    words = ("--arrivals", rates, "--service-time", "100", "--group", "checkout")
    was = write(tmp_path / "was.csv", rows)
    assert scale(tmp_path, *words, "--recorded", was, policies=("hpa",)) == 0
    said = capsys.readouterr()
    assert "checkout: recorded is UNKNOWN: recorded_scaling" in said.err
    assert why in said.err
    found = {r["policy"]: r for r in rows_of(tmp_path / "o", "policy_summary")}
    assert why in found["recorded"]["reason"]
    assert found["recorded"]["pod_hours"] is found["recorded"]["on_front"] is None
    assert found["hpa"]["chosen"]
    assert "  recorded is UNKNOWN: recorded_scaling" in said.out


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"replicas": -1}, "replicas is -1; expected 0 to 1,000"),
        ({"replicas": 1_001}, "replicas is 1001; expected 0 to 1,000"),
        ({"at_ms": BEGIN_MS // 1_000}, "at_ms is 1795231200; expected epoch milliseconds"),
        ({"replicas": "six"}, "replicas is 'six', not a valid INT"),
        (
            {"at_ms": BEGIN_MS + MINUTE_MS, "replicas": 3},
            "2 rows with different content have the key",
        ),
    ],
)
def test_bad_replicas_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], row: dict[str, Any], said: str
) -> None:
    rows = recorded([2] * 10)
    was = write(tmp_path / "was.csv", [rows[0] | row, *rows[1:]])
    rates = write(tmp_path / "a.csv", arrivals(SALE))
    words = ("--arrivals", rates, "--service-time", "100", "--recorded", was)
    assert scale(tmp_path, *words) == 4
    assert said in capsys.readouterr().err


def test_a_missed_budget_ends_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = write(tmp_path / "a.csv", arrivals(SALE))
    words = ("--arrivals", rates, "--service-time", "100", "--group", "checkout")
    assert scale(tmp_path, *words, "--max-pod-hours", "0.1", "--fail-on", "budget") == 3
    said = capsys.readouterr().out
    assert "NO POLICY KEEPS THE BUDGETS of DefaultCluster/checkout; * has the least regret:" in said
    assert "pod hours, at most 0.1 are allowed" in said
    kept = ("--max-pod-hours", "900", "--fail-on", "budget", "--overwrite")
    assert scale(tmp_path, *words, *kept) == 0


GOOD = arrivals(SALE)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([GOOD[0] | {"messages_per_second": -1}], "messages_per_second is -1.0; expected 0"),
        ([GOOD[0] | {"messages_per_second": "NaN"}], "is 'NaN', not a valid DOUBLE"),
        ([GOOD[0] | {"to_ms": BEGIN_MS}], "is not after from_ms"),
        ([GOOD[0] | {"from_ms": "2026-11-21 03:20:00"}], "from_ms"),  # no time zone
        ([GOOD[0] | {"from_ms": BEGIN_MS // 1_000}], "from_ms is 1795231200"),
        ([GOOD[0] | {"low": 900.0}], "low, messages_per_second and high do not ascend"),
        ([GOOD[0] | {"queue_id": 3}], "queue_id 3 of Checkout lacks its broker_name"),
        ([GOOD[0], GOOD[2]], "is unknown from 2026-11-21 03:21:00Z to 2026-11-21 03:22:00Z"),
        (arrivals([9_000.0] * 3), "no number of members is enough"),
    ],
)
def test_bad_arrivals_are_refused_with_their_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: list[dict[str, Any]], said: str
) -> None:
    rates = write(tmp_path / "a.csv", rows)
    words = ("--arrivals", rates, "--service-time", "100", "--group", "checkout")
    assert scale(tmp_path, *words) == 4
    assert said in capsys.readouterr().err
    assert not (tmp_path / "o" / "policy_summary").exists()


def test_a_bad_capacity_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = write(tmp_path / "a.csv", GOOD)
    for row, said in (
        ({"service_ms": 0}, "service_ms is 0.0; expected above 0"),
        ({"service_ms": 5, "threads": 0}, "threads is 0; expected 1 or more"),
        ({"service_ms": 5, "service_ms_p99": 4}, "service_ms_p99 is 4.0; expected 1 to 14.9 times"),
        ({"service_ms": 5, "service_ms_p99": 90}, "times service_ms 5.0"),
    ):
        capacity = write(tmp_path / "c.csv", [{"consumer_group": "checkout", **row}])
        assert scale(tmp_path, "--arrivals", rates, "--capacity", capacity) == 4
        assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fail-on", "budget"), "--fail-on budget needs --max-late N or --max-pod-hours X"),
        (("--promise", "1500ms"), "expected whole seconds"),
        (("--seeds", "0"), "from 1 to 1,000"),
        (("--late-price", "-1"), "expected a number from 0 up"),
        (("--arrivals", "nowhere.csv"), "no such file"),
    ],
)
def test_wrong_options_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, str], said: str
) -> None:
    assert scale(tmp_path, *words) in (2, 4)
    assert said in capsys.readouterr().err


def test_without_a_service_time_or_a_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = write(tmp_path / "a.csv", GOOD)
    assert scale(tmp_path, "--arrivals", rates, "--group", "checkout") == 4
    assert "its service time is not known: give capacity a row" in capsys.readouterr().err
    assert main(None, ["autoscale", "--input", STEADY, "--output", str(tmp_path / "o")]) == 2
    assert "--policy FILE is missing" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rates = write(tmp_path / "a.csv", GOOD)
    words = ("--arrivals", rates, "--service-time", "9", "--dry-run")
    assert scale(tmp_path, *words) == 0
    said = capsys.readouterr().out
    assert "policy_summary, rejected, scaler.yaml, scaling.svg" in said
    assert f"arrivals                  10 rows, 0 bad  {rates}" in said
    assert "2 policies in 2 futures of 1 group\n" in said
    assert "DefaultCluster/checkout  2026-11-21 03:20:00Z to 2026-11-21 03:30:00Z\n" in said
    assert "DefaultCluster/ledger  UNKNOWN: arrivals has no row of Ledger\n" in said
    assert scale(tmp_path, *words, "--json") == 0
    assert json.loads(capsys.readouterr().out)["groups"][0]["from_ms"] == BEGIN_MS
    assert not (tmp_path / "o").exists()


def test_a_dry_run_states_what_was_recorded_as_a_run_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = arrivals([5.0] * 10, "Ledger")
    rates = write(tmp_path / "a.csv", [*arrivals(SALE), *ledger])
    was = write(tmp_path / "was.csv", [*recorded([2] * 10), *recorded([3] * 4, "ledger")])
    words = ("--arrivals", rates, "--service-time", "100", "--recorded", was)
    assert scale(tmp_path, *words, "--dry-run") == 0
    said = capsys.readouterr().out
    why = "recorded_scaling does not show its replicas from 2026-11-21 03:24:00Z to "
    why += "2026-11-21 03:30:00Z"
    assert "3 policies in 2 futures of 2 groups\n" in said
    assert said.count("is UNKNOWN") == 1
    assert f"ledger 2026-11-21 03:20:00Z to 2026-11-21 03:30:00Z recorded is UNKNOWN: {why}" in (
        " ".join(said.split())
    )
    assert scale(tmp_path, *words, "--dry-run", "--json") == 0
    dry = json.loads(capsys.readouterr().out)
    assert [(each["recorded"], each["recorded_reason"]) for each in dry["groups"]] == [
        (True, None),
        (False, why),
    ]
    assert scale(tmp_path, *words, "--json") == 0
    run = capsys.readouterr()
    assert f"ledger: recorded is UNKNOWN: {why}" in run.err
    policies = ["hpa", "by-rate", "recorded"]
    assert dry["policies"] == json.loads(run.out)["policies"] == policies
    # without one group that has it, it is no policy
    unknown = ("--group", "ledger", "--dry-run", "--json", "--overwrite")
    assert scale(tmp_path, *words, *unknown) == 0
    assert json.loads(capsys.readouterr().out)["policies"] == policies[:-1]


def test_a_dry_run_ends_with_the_code_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = write(tmp_path / "a.csv", [GOOD[0], GOOD[2]])
    words = ("--arrivals", rates, "--service-time", "9")
    assert scale(tmp_path, *words) == 4
    why = "no group can be simulated; DefaultCluster/checkout: the rate of Checkout/broker-a/0 is"
    assert why in capsys.readouterr().err
    assert scale(tmp_path, *words, "--dry-run") == 4
    said = capsys.readouterr().out
    assert f"A run would end with exit code 4: {why}" in said
    assert "DefaultCluster/ledger  UNKNOWN: arrivals has no row of Ledger" in said


def test_a_search_prints_what_no_variation_beats(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rates = write(tmp_path / "a.csv", arrivals(SALE))
    words = ("--arrivals", rates, "--service-time", "100", "--group", "checkout", "--search")
    assert scale(tmp_path, *words) == 0
    rows = rows_of(tmp_path / "o", "policy_summary")
    assert len(rows) == 2 * 19
    printed = [row for row in rows if row["on_front"] or row["policy"] in ("hpa", "by-rate")]
    said = capsys.readouterr().out
    assert f"{len(rows) - len(printed)} variations that these beat" in said
    for row in rows:
        assert (f"{row['policy']} " in said) == (row in printed), row["policy"]


def test_offsets_show_the_rates_of_groups_without_a_table(tmp_path: Path) -> None:
    # the demo's queues get 100 messages a second each, for as long as it was looked at
    words = ("--service-time", "5", "--group", "checkout")
    assert scale(tmp_path, *words, policies=("hpa",)) == 0
    (row,) = rows_of(tmp_path / "o", "policy_summary")
    assert row["reason"] is None
    points = rows_of(tmp_path / "o", "lag_over_time")
    assert points[0]["messages_per_second"] == pytest.approx(3_200)
