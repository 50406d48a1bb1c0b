"""``rmq-proxy.json``: what a proxy was told at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.text.json_tables import Entry, Results, read_document
from rebalance_core.ingest.refusal import BAD_ENTRY, Unreadable, shown

KINDS = {"proxy_mode": "mode: CLUSTER (a process of its own) or LOCAL (inside a broker)"}

MODES = ("CLUSTER", "LOCAL")
"""ProxyMode; RocketMQ takes any letter case."""


def parse_proxy_config_json(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS`; none where the file leaves the mode to the default. Never raises."""
    return read_document(text, source, _facts)


def _facts(document: Mapping[str, Any], source: str) -> Results:
    mode = Entry(document, "the document").text("proxyMode")
    if mode is None:
        return
    if mode.upper() not in MODES:
        raise Unreadable(BAD_ENTRY, f"proxyMode is {shown(mode)}, not CLUSTER or LOCAL")
    yield Fact("proxy_mode", None, {"mode": mode.upper()}, source)
