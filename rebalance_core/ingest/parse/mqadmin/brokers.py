"""``mqadmin clusterList``, ``getBrokerConfig`` and ``getNamesrvConfig``: the brokers and their
settings.
"""

from __future__ import annotations

from rebalance_core.ingest.fact import UNPARSABLE_LINE, Fact, Unread, Unreadable, shown, unread
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import (
    Line,
    filled,
    foreign,
    read_lines,
    read_output,
    token_of,
    whole,
)
from rebalance_core.ingest.parse.text.java_text import PrintfRow, count_of, long_of

# ``mqadmin clusterList``: the brokers that the name server knows.
#
# Printed by ``ClusterListSubCommand``. Each release moves its load columns; only the first five
# and the last are read.

CLUSTER_LIST_KINDS = {
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
    """The facts of `CLUSTER_LIST_KINDS` from the output of one run, with or without ``-m``."""
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


# ``mqadmin getBrokerConfig`` and ``getNamesrvConfig``: the settings of servers that run.
#
# Both print ``============<address>============`` and a line ``%-50s= %s`` for each property, of
# a whole cluster (-c) ``Master: <address>`` and ``My Master: <address>=====Slave: <address>``.

SERVER_CONFIG_KINDS = {
    "server_settings": (
        "a broker or name server that answered: address, and settings, those of SETTINGS that it "
        "has, by name"
    ),
    **command_output.KINDS,
}
SETTINGS = (
    "brokerName", "brokerId", "slaveReadEnable", "enableSlaveActingMaster", "supportActingMaster",
)  # fmt: skip
"""What is taken of several hundred properties."""

_RULE = "============"
_SLAVE = "=====Slave: "
_NO_MASTER = "NO_MASTER"
"""CommandUtil.NO_MASTER_PLACEHOLDER: stands for the address of a master that is not there."""


def parse_server_config(text: str, source: str) -> list[Fact | Unread]:
    """The facts of `SERVER_CONFIG_KINDS` from the output of one run."""
    output = read_output(text, source)
    results: list[Fact | Unread] = []
    settings: dict[str, str] | None = None
    for line in output.lines:
        try:
            if line.text.startswith(_RULE):
                settings = {}
                address = _address(line)
                if address != _NO_MASTER:
                    values = {"address": address, "settings": settings}
                    results.append(Fact("server_settings", None, values, line.source))
            elif settings is None or "=" not in line.text:
                if not line.text.endswith("has no config property!"):
                    raise foreign(line, "getBrokerConfig")
            else:
                name, _, value = whole(line).partition("=")
                if name.strip() in SETTINGS:
                    settings[name.strip()] = value.strip()
        except Unreadable as refusal:
            results.append(unread(line.source, line.text, refusal))
    return [*results, *output.others]


def _address(line: Line) -> str:
    head = whole(line).strip().removeprefix(_RULE).removesuffix(_RULE)
    return token_of(head.partition(_SLAVE)[2] or head.removeprefix("Master: "), "address")
