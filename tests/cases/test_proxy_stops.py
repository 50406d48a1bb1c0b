"""Waits and repeats around the stop and the kill of a proxy, as a cluster recorded them, are inside
what ``restart_proxies`` states of them.
"""

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from rebalance_core.model.times import SECOND_MS
from rebalance_core.protocol.proxy_stops import FIRST_RECEIVE_MS, REGISTERED_AGAIN_MS, ProxyStop

HERE = Path(__file__).parent
TRUTH = HERE / "waits_at_proxy_stops.tsv"
"""Of each stop and group the longest waits, and all messages that came twice."""
TAKEN_MS = 1_000
"""From the birth of a message to its pop, on the busy host."""
STOPS = ("stopped", "killed")


def recorded(how: str) -> Iterator[dict[str, str]]:
    with TRUTH.open(encoding="utf-8") as file:
        yield from (row for row in csv.DictReader(file, delimiter="\t") if row["how"] == how)


@pytest.mark.parametrize("how", STOPS)
def test_waits_and_repeats_are_inside(how: str) -> None:
    held, repeated = Counter[str](), Counter[str]()
    for row in recorded(how):
        stop = ProxyStop(how == "killed", invisible_ms=int(row["invisible_ms"]))
        wait_ms = int(row["received_ms"]) - int(row["born_ms"])
        assert wait_ms <= stop.longest_wait_ms, row
        if wait_ms > REGISTERED_AGAIN_MS + FIRST_RECEIVE_MS:
            held[row["consumer_group"]] += 1
            assert stop.held_back_ms is not None, row
            earliest_ms, latest_ms = stop.held_back_ms
            assert earliest_ms <= wait_ms <= latest_ms + TAKEN_MS, row
        if row["again_ms"]:
            repeated[row["consumer_group"]] += 1
            assert int(row["again_ms"]) - int(row["stop_ms"]) <= stop.repeated_by_ms, row
    assert held == ({"px-push": 2, "px-slow": 2, "px-simple": 1} if how == "killed" else {})
    assert repeated == ({} if how == "killed" else {"px-push": 4, "px-slow": 4})


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("proxies") / "tables"
    words = ["--collection", str(HERE / "data" / "proxies-restart"), "--output", str(output)]
    assert main("ingest", words) == 0
    return output


@pytest.mark.parametrize(
    ("stops", "clients", "seconds"),
    [
        (STOPS[:1], {"px-push": 2, "px-simple": 1, "px-slow": 1}, (11.0, 40.0)),
        (STOPS, {"px-push": 2, "px-simple": 2, "px-slow": 2}, (64.0, 64.0)),
    ],
)
def test_the_edits_state_what_came_of_both(
    stops: tuple[str, ...],
    clients: dict[str, int],
    seconds: tuple[float, float],
    ingested: Path,
    tmp_path: Path,
) -> None:
    """Clients are at the proxy that logged their join, and move to the one that is then killed."""
    edits = ['name = "stops"\ndescription = "d"']
    for row in (next(recorded(how)) for how in stops):
        away_s = (int(row["back_ms"]) - int(row["stop_ms"])) // SECOND_MS
        edits.append(
            f'[[edit]]\nkind = "restart_proxies"\nat = {row["stop_ms"]}\n'
            f'proxy = "{row["proxy"]}"\nhow = "{row["how"]}"\nback_after = "{away_s}s"\n'
            'group = "px-*"'
        )
    scenario = tmp_path / "stops.toml"
    scenario.write_text("\n".join(edits))
    words = ["--input", str(ingested), "--scenario", str(scenario)]
    assert main("plan", [*words, "--output", str(tmp_path / "plan")]) == 0
    rows = ds.dataset(tmp_path / "plan" / "plan_summary", format="parquet").to_table().to_pylist()
    found = {
        one["consumer_group"]: (one["proxy_clients"], (one["proxy_wait_s"], one["proxy_repeat_s"]))
        for one in rows
        if one["scenario"] == "stops" and one["proxy_clients"] is not None
    }
    assert found == {group: (number, seconds) for group, number in clients.items()}
