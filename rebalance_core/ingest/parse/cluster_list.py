"""``mqadmin clusterList``: the brokers known to the name server."""

import re

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.column_names import filled
from rebalance_core.ingest.parse.command_output import (
    FIRST_ROW,
    Line,
    cut_off,
    foreign,
    marked,
    read_lines,
    read_output,
    stray,
    unheaded,
    whole,
)
from rebalance_core.ingest.parse.headed_tables import WORD, WORDS, Column, HeadedTable
from rebalance_core.ingest.parse.java_numbers import count_of, long_of
from rebalance_core.ingest.parse.printf_rows import PrintfRow

_TOTALS_ROW = PrintfRow("%-16s  %-32s %14s %14s %14s %s")


_TOTALS = dict.fromkeys(
    (
        "Cluster Name",
        "Broker Name",
        "InTotalYest",
        "OutTotalYest",
        "InTotalToday",
        "OutTotalToday",
    ),
    Column(WORDS),
)


VERSION = r"(?:V\d+_\d+_\d+\w*|(?!V)[A-Za-z]\w*)?"
"""As in consumerConnection, but empty for a broker that did not answer."""


_BROKERS = {
    "Cluster Name": Column(WORDS, what="a cluster"),
    "Broker Name": Column(WORDS, what="the name of a broker"),
    "BID": Column(r"\d{1,19}", code=fact.BAD_NUMBER, what="the id of a broker"),
    "Addr": Column(WORD, 1, what="an address"),
    "Version": Column(VERSION, 1, what="a version"),
}


_ACTIVATED = "ACTIVATED"


_ADDRESS = re.compile(r"\S:\d{1,5}(?=\s)")


def parse_cluster_list(text: str, source: str) -> list[Fact | Unread]:
    """Read the output of one run, with or without ``-m``.

    Facts:
        broker: a broker process known to the name server: cluster, broker_name, broker_id (0 is the
            master), addr, version (None if it did not answer), activated (5.x), partial (present,
            and true, only if other rows could not be read)
        broker_totals: a broker's message counts (-m): cluster, broker_name, in_yesterday,
            out_yesterday, in_today, out_today
    """
    output = read_output(text, source)
    table = _BrokerTable()
    results = read_lines(output.lines, table.read)
    if not table.headed:
        results = list(unheaded(results, output.others))
    elif not (results or output.others):
        results = [cut_off(source, output.lines, FIRST_ROW)]
    return marked([*results, *output.others])


class _BrokerTable:
    """Reads the rows after a header by the columns of that header."""

    def __init__(self) -> None:
        self._brokers: HeadedTable | None = None
        self._totals = False

    @property
    def headed(self) -> bool:
        """True if the output has a header."""
        return self._totals or self._brokers is not None

    def read(self, line: Line) -> Fact | None:
        if line.text.lstrip().startswith("#"):
            self._head(line)
            return None
        if not self.headed:
            raise stray(line)
        return _totals(line) if self._brokers is None else self._broker(line, self._brokers)

    def _head(self, line: Line) -> None:
        totals = HeadedTable(line.text, _TOTALS).has(*_TOTALS)
        brokers = HeadedTable(line.text, _BROKERS)
        if not totals and not brokers.has(*_BROKERS):
            raise foreign(line, "clusterList")
        whole(line)
        self._totals, self._brokers = totals, None if totals else brokers

    def _broker(self, line: Line, table: HeadedTable) -> Fact:
        cells = table.read(whole(line))
        if len(_ADDRESS.findall(line.text)) > 1:
            table.refuse()
            raise Unreadable(fact.UNPARSABLE_LINE, "it holds two rows")
        try:
            activated = _activated(line.text) if table.titles[-1] == _ACTIVATED else None
        except Unreadable:
            table.refuse()
            raise
        values = {
            "cluster": cells["Cluster Name"],
            "broker_name": cells["Broker Name"],
            "broker_id": count_of(cells["BID"], "#BID"),
            "addr": cells["Addr"],
            "version": cells["Version"] or None,
            "activated": activated,
        }
        return Fact("broker", None, values, line.source)


def _activated(load: str) -> bool:
    word = load.split()[-1]
    if word not in ("true", "false"):
        raise Unreadable(
            fact.UNPARSABLE_LINE, f"#ACTIVATED is {fact.shown(word)}, not true or false"
        )
    return word == "true"


def _totals(line: Line) -> Fact:
    cluster, broker_name, *counts = _TOTALS_ROW.read(whole(line))
    names = ("in_yesterday", "out_yesterday", "in_today", "out_today")
    values = {"cluster": filled(cluster, "cluster"), "broker_name": filled(broker_name, "broker")}
    numbers = {name: long_of(text, name) for name, text in zip(names, counts, strict=True)}
    return Fact("broker_totals", None, {**values, **numbers}, line.source)
