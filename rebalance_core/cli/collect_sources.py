"""`collect --init --name-server`: derive the file of sources from the cluster's answers."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from rebalance_core.model.errors import UsageError

NAME = "sources.txt"
LOGS = "logs/rocketmqlogs"
"""The log folder below a server's home, according to RocketMQ's logback files."""
STORE, KEY_VALUES = "store", "namesrv/kvConfig.json"
"""Default paths below a server's home (MessageStoreConfig, NamesrvConfig), from which the home is
derived.
"""
UNKNOWN_LOGS = "LOGS"
REMOTING_PORT = 8080
"""The default of remotingListenPort in ProxyConfig."""
HEAD = """\
# For rebalance collect --sources: servers of cluster {cluster}, as {address} listed them.
# No server states where it logs: RocketMQ's own place, beside the store, is assumed. Correct it
# where it differs. A place is FOLDER here, or HOST:FOLDER by ssh. Complete lines that begin with #.
"""
CLIENTS = """
# No server states where clients log. For each that you can reach:
# client  NAME  HOST:/home/USER/logs/rocketmqlogs
"""


@dataclass(frozen=True)
class Server:
    """A server in the output of ``Servers.java``.

    Attributes:
        kind: broker, namesrv or proxy.
        cluster: empty for a name server.
        name: a broker's name, or the address of another server.
        host: its host; empty for this machine.
        stated: the root of a broker's store, or a name server's key-value configuration file; empty
            if the server did not answer.
    """

    kind: str
    cluster: str
    name: str
    host: str
    stated: str


def read_servers(text: str) -> list[Server]:
    """Parse the output of ``Servers.java``."""
    return [Server(*line.split("\t")) for line in text.splitlines()]


def of_cluster(servers: Iterable[Server], cluster: str, address: str) -> list[Server]:
    """Return the servers of a cluster, and all name servers.

    Raises:
        UsageError: no broker belongs to the cluster.
    """
    known = list(servers)
    clusters = sorted({server.cluster for server in known if server.kind == "broker"})
    if cluster not in clusters:
        raise UsageError(
            f"--cluster {cluster}: the name server {address} knows {', '.join(clusters) or 'none'}"
        )
    return [server for server in known if server.cluster in (cluster, "")]


def render_sources(servers: Sequence[Server], cluster: str, address: str) -> tuple[str, int]:
    """Return the file, and the number of servers for an operator to complete."""
    rows = list(_rows(servers))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]
    text = HEAD.format(cluster=cluster, address=address) + "\n".join(
        line.rstrip() for line in lines
    )
    return f"{text}\n{CLIENTS}", sum(row[0].startswith("#") for row in rows[1:])


def _rows(servers: Sequence[Server]) -> Iterator[tuple[str, str, str, str]]:
    yield "# kind", "name", "logs", "store or remoting port"
    numbers = {"namesrv": 0, "proxy": 0}
    for server in servers:
        name = server.name
        if server.kind in numbers:
            numbers[server.kind] += 1
            name = f"{server.kind}-{numbers[server.kind]}"
        logs, second = _places(server)
        known = UNKNOWN_LOGS not in logs and all(map(_is_word, (name, logs, second)))
        yield ("" if known else "# ") + server.kind, name, logs, second


def _places(server: Server) -> tuple[str, str]:
    """Return the log folder and the rest of the line."""
    if server.kind == "proxy":
        return _place(server.host, UNKNOWN_LOGS), f"{server.host or 'localhost'}:{REMOTING_PORT}"
    default = STORE if server.kind == "broker" else KEY_VALUES
    home = server.stated.removesuffix(f"/{default}")
    logs = str(PurePosixPath(home) / LOGS) if home not in ("", server.stated) else UNKNOWN_LOGS
    store = _place(server.host, server.stated or "STORE") if server.kind == "broker" else ""
    return _place(server.host, logs), store


def _place(host: str, folder: str) -> str:
    return f"{host}:{folder}" if host else folder


def _is_word(text: str) -> bool:
    """Return True for a string that a line of the file can contain, which excludes IPv6 addresses
    as hosts.
    """
    return not any(sign.isspace() or sign in '"\\' for sign in text) and text.count(":") < 2
