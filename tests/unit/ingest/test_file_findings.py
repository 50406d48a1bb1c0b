"""Findings on single files of a collection."""

from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import ingest_collection

MESSAGE = "suspend this consumer, g"
LOCAL = f"2026-11-21 11:28:35,123 INFO RocketmqClient - {MESSAGE}\n"
FIXED = (
    "2026-11-21 11:28:35.123 INFO  [24100] [main] "
    f"[o.a.r.c.i.c.DefaultMQPushConsumerImpl#?:?] - {MESSAGE}\n"
)


@pytest.mark.parametrize(
    ("lines", "settings", "assumed"),
    [
        (LOCAL, "", ["clients/app"]),
        (FIXED, "", []),
        (FIXED + LOCAL, "", ["clients/app"]),
        (LOCAL, '[time_zones]\n"clients/app/*" = "UTC"\n', []),
    ],
)
def test_a_zone_is_assumed_only_of_logs_with_times_of_the_client_s_host(
    lines: str, settings: str, assumed: list[str], tmp_path: Path
) -> None:
    """5.1 and newer clients write GMT+8: their host's zone does not matter."""
    (tmp_path / "collection.toml").write_text(f'cluster = "c"\n{settings}')
    log = tmp_path / "clients" / "app" / "rocketmq_client.log"
    log.parent.mkdir(parents=True)
    log.write_text(lines)
    findings = ingest_collection(tmp_path).tables["findings"]
    named = [row["summary"] for row in findings if row["rule_id"] == "INGEST_ASSUMED"]
    assert [name for name in ("clients/app",) if any(name in text for text in named)] == assumed
