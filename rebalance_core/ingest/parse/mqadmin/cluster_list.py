"""``mqadmin clusterList``: the brokers that the name server knows.

Printed by ``ClusterListSubCommand``. Each release moves its load columns; only the first five and
the last are read.
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import (
    Line,
    foreign,
    read_lines,
    read_output,
    whole,
)
from rebalance_core.ingest.parse.text.java_numbers import count_of, long_of
from rebalance_core.ingest.parse.text.printf_rows import PrintfRow
from rebalance_core.ingest.parse.text.table_names import filled, token_of
from rebalance_core.ingest.refusal import UNPARSABLE_LINE, Unreadable, shown

KINDS = {
    "broker": (
        "a broker process that the name server knows: cluster, broker_name, broker_id (0 is the "
        "master), addr, version (None: it did not answer), activated (5.x)"
    ),
    "broker_totals": (
        "messages of a broker (-m): cluster, broker_name, in_yesterday, out_yesterday, in_today, "
        "out_today"
    ),
    **command_output.KINDS,
}

_TOTALS_ROW = PrintfRow("%-16s  %-32s %14s %14s %14s %s")


def parse_cluster_list(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `KINDS` from the output of one run, with or without ``-m``."""
    output = read_output(text, source)
    return [*read_lines(output.lines, _Table().read), *output.others]


class _Table:
    """The rows after a header are read as that header says."""

    def __init__(self) -> None:
        self._brokers: PrintfRow | None = None
        self._has_activated = False
        self._totals = False

    def read(self, line: Line) -> Fact | None:
        text = line.text
        if text.startswith("#Cluster Name") and "#Broker Name" in text:
            self._head(text)
            return None
        if text.startswith("#") or not (self._brokers or self._totals):
            raise foreign(line, "clusterList")
        return _totals(line) if self._brokers is None else self._broker(line, self._brokers)

    def _head(self, text: str) -> None:
        # 4.9 gives the cluster 16 columns and 5.x 22; the header is padded like the rows.
        width = text.index("#Broker Name") - len("  ")
        self._totals = "#InTotalYest" in text
        self._has_activated = "#ACTIVATED" in text
        row = PrintfRow(f"%-{width}s  %-22s  %-4s  %-22s %-16s %s")
        self._brokers = None if self._totals else row

    def _broker(self, line: Line, row: PrintfRow) -> Fact:
        cluster, broker_name, broker_id, addr, version, load = row.read(whole(line))
        values = {
            "cluster": filled(cluster, "cluster"),
            "broker_name": filled(broker_name, "broker name"),
            "broker_id": count_of(broker_id, "#BID"),
            "addr": token_of(addr, "address"),
            "version": token_of(version, "version") if version else None,
            "activated": _activated(load) if self._has_activated else None,
        }
        return Fact("broker", None, values, line.source)


def _activated(load: str) -> bool:
    word = load.rpartition(" ")[2]
    if word not in ("true", "false"):
        raise Unreadable(UNPARSABLE_LINE, f"#ACTIVATED is {shown(word)}, not true or false")
    return word == "true"


def _totals(line: Line) -> Fact:
    cluster, broker_name, *counts = _TOTALS_ROW.read(whole(line))
    names = ("in_yesterday", "out_yesterday", "in_today", "out_today")
    values = {"cluster": filled(cluster, "cluster"), "broker_name": filled(broker_name, "broker")}
    numbers = {name: long_of(text, name) for name, text in zip(names, counts, strict=True)}
    return Fact("broker_totals", None, values | numbers, line.source)
