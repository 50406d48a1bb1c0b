"""Input tables of recorded results, good and bad rows."""

import json
from pathlib import Path

BASE = 1_795_000_000_000


def write_input(folder: Path, *, events: bool = True) -> Path:
    """Two clients on two brokers; four bad rows if the brokers are known, else three."""
    folder.mkdir(parents=True)
    lines = [json.dumps(row) for row in rows()]
    (folder / "send_results.jsonl").write_text("\n".join([*lines, "{not json"]) + "\n")
    if events:
        known = [
            {
                "cluster": "c",
                "event_ms": BASE,
                "sequence": i,
                "event_type": "BROKER_UP",
                "broker_name": name,
            }
            for i, name in enumerate(("a", "b"))
        ]
        text = "".join(f"{json.dumps(row)}\n" for row in known)
        (folder / "cluster_events.jsonl").write_text(text)
    return folder


def rows() -> list[dict[str, object]]:
    made = []
    for client in ("10.0.0.1@1", "10.0.0.2@1"):
        for number in range(40):
            made.append(result(client, number * 100, "ab"[number % 2]))
        made.append(result(client, 5000, "a", 800))
        made.append(result(client, 5500, "a", 5))
    made.append(result("10.0.0.2@1", 5400, "a"))  # TIME_WENT_BACK
    made.append(result("10.0.0.2@1", 6000, "x"))  # UNKNOWN_BROKER
    made.append(result("10.0.0.1@1", 6000, "a", -1))  # BAD_LATENCY
    made.append(result("10.0.0.1@1", 6000, "a", 5, "SENT"))  # BAD_ENUM
    return made


def result(
    client: str, at_ms: int, broker: str, latency_ms: int = 5, status: str = "SEND_OK"
) -> dict[str, object]:
    return {
        "cluster": "c",
        "producer_group": "p",
        "client_id": client,
        "topic": "t",
        "broker_name": broker,
        "event_ms": BASE + at_ms,
        "latency_ms": latency_ms,
        "status": status,
    }
