"""Facts that a proxy's broker.log and proxy.log state beside those of a broker's."""

from rebalance_core.contracts.fact_declaration import CLUSTER, PROXY, LogFact

PROXY_LOG = (
    LogFact(
        "proxy_starting", PROXY, CLUSTER, "",
        "no field: the proxy starts; its consumer table is empty",
    ),
    LogFact("proxy_mode", PROXY, CLUSTER, "", "mode (CLUSTER, LOCAL), as it starts"),
    LogFact(
        "proxy_alive", PROXY, CLUSTER, "",
        "no field: it logged of a member; one fact a minute",
    ),
)  # fmt: skip
