"""``mqadmin getBrokerConfig`` and ``getNamesrvConfig``: the settings of running servers."""

from collections.abc import Iterable

from rebalance_core.ingest import fact
from rebalance_core.ingest.fact import Fact, Unread, Unreadable
from rebalance_core.ingest.parse.broker_log import RETENTION
from rebalance_core.ingest.parse.column_names import token_of
from rebalance_core.ingest.parse.command_output import (
    Line,
    cut_off,
    foreign,
    is_partial,
    read_output,
    whole,
)
from rebalance_core.ingest.parse.java_numbers import INT_MAX
from rebalance_core.ingest.parse.java_text import whole as whole_number

SETTINGS = (
    "brokerName",
    "brokerId",
    "slaveReadEnable",
    "enableSlaveActingMaster",
    "supportActingMaster",
    "notifyConsumerIdsChangedEnable",
    "realTimeNotifyConsumerChange",
    RETENTION,
)
"""The properties that are read, among several hundred."""
_OF_EVERY_BROKER = ("brokerName", "brokerId", RETENTION)
_OF_NAME_SERVERS = "kvConfigPath "
"""A property of every name server but of no broker (NamesrvConfig)."""


_RULE = "============"


_SLAVE = "=====Slave: "


_NO_MASTER = "NO_MASTER"
"""CommandUtil.NO_MASTER_PLACEHOLDER: replaces the address of a missing master."""


def parse_broker_config(text: str, source: str) -> list[Fact | Unread]:
    """Read an answer from getBrokerConfig, which also shows whether it was cut off.

    A pasted answer may come from name servers.
    """
    needed = () if _OF_NAME_SERVERS in text else _OF_EVERY_BROKER
    return parse_server_config(text, source, needed)


def parse_server_config(text: str, source: str, needed: Iterable[str] = ()) -> list[Fact | Unread]:
    """Read the output of one run.

    Args:
        text: the output.
        source: its file.
        needed: the properties whose absence shows that the last server's answer was cut off.

    Facts:
        server_settings: a broker or name server that answered: address, and settings (those in
            SETTINGS that it has, by name)
    """
    output = read_output(text, source)
    results: list[Fact | Unread] = []
    settings: dict[str, str] | None = None
    has_properties = False
    for line in output.readable:
        try:
            if line.text.startswith(_RULE):
                settings, has_properties = {}, False
                address = _broker_address(line)
                if address != _NO_MASTER:
                    values = {"address": address, "settings": settings}
                    results.append(Fact("server_settings", None, values, line.source))
            elif settings is None or "=" not in line.text:
                if not line.text.endswith("has no config property!"):
                    raise foreign(line, "getBrokerConfig")
            else:
                has_properties = True
                name, _, value = whole(line).partition("=")
                if name.strip() in SETTINGS:
                    settings[name.strip()] = _setting(name.strip(), value.strip())
        except Unreadable as refusal:
            results.append(fact.unread(line.source, line.text, refusal))
    # GetBrokerConfigCommand prints an empty line after each broker, in every release
    ended = is_partial(results) or text.replace("\r", "").endswith("\n\n")
    if settings is not None and has_properties and not ended:
        missing = [name for name in needed if name not in settings]
        results += [cut_off(source, output.lines, name) for name in missing[:1]]
    return [*results, *output.others]


def _setting(name: str, value: str) -> str:
    """Return the checked value of a broker setting.

    Raises:
        Unreadable: it was truncated, so a switch is neither true nor false, or a number has no
            digits.
    """
    if name == RETENTION and whole_number(value, INT_MAX) is None:
        raise Unreadable(fact.BAD_NUMBER, f"{name} is {fact.shown(value)}, not a number of hours")
    if name.endswith(("Enable", "Master", "Change")) and value not in ("true", "false"):
        raise Unreadable(fact.UNPARSABLE_LINE, f"{name} is {fact.shown(value)}, not true or false")
    return value


def _broker_address(line: Line) -> str:
    head = whole(line).strip().removeprefix(_RULE).removesuffix(_RULE)
    return token_of(head.partition(_SLAVE)[2] or head.removeprefix("Master: "), "address")
