"""``mqadmin getBrokerConfig`` and ``getNamesrvConfig``: the settings of servers that run.

Both print ``============<address>============`` and a line ``%-50s=  %s`` for each property, of a
whole cluster (-c) ``Master: <address>`` and ``My Master: <address>=====Slave: <address>``.
"""

from __future__ import annotations

from rebalance_core.ingest.fact import Fact, Unread
from rebalance_core.ingest.parse.mqadmin import command_output
from rebalance_core.ingest.parse.mqadmin.command_output import (
    Line,
    foreign,
    read_output,
    whole,
)
from rebalance_core.ingest.parse.text.table_names import token_of
from rebalance_core.ingest.refusal import Unreadable, unread

KINDS = {
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
    """The facts of `KINDS` from the output of one run."""
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
