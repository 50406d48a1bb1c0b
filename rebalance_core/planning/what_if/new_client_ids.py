"""Client ids of consumers that `what_if` adds: no seed, no channel, by the caller's template.

Where the new ids sort among the old ones decides what AVG moves, so the caller may say how they
look; by default they look like those of RocketMQ's clients (`client_id_form`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from ipaddress import IPv4Address
from string import Formatter

from rebalance_core.model.errors import UsageError, did_you_mean
from rebalance_core.planning.what_if.client_id_form import (
    MadeId,
    address_of,
    addresses_from,
    host_of,
)

DEFAULT_TEMPLATE = str(MadeId("{ip}", "{pid}", "{nanos}"))
FIELDS = {
    "n": "1, 2, 3 … of the consumers added",
    "ip": "the next free IPv4 addresses after the highest one of the group",
    "pid": "a process id, another for each",
    "nanos": "a System.nanoTime(), another for each",
}
FIRST_ADDRESS = IPv4Address("10.0.0.1")  # of a group whose ids begin with no address
PID, PID_STEP = 20_000, 37
NANOS, NANOS_STEP = 1_000_000_000_000, 7_919_000_000_000


def new_client_ids(
    count: int, present: Collection[str], template: str = DEFAULT_TEMPLATE
) -> list[str]:
    """Ids that are not in ``present``; the same arguments give the same ids.

    Args:
        count: How many.
        present: Client ids of the group.
        template: Text with fields of `FIELDS` in braces; with none of them it must be for one id.

    Raises:
        UsageError: `check_template` finds a mistake, or the template gives an id twice or one that
            is there already.

    >>> new_client_ids(2, ["10.0.0.9@711#81"])
    ['10.0.0.10@20000#1000000000000', '10.0.0.11@20037#8919000000000']
    >>> new_client_ids(2, [], "web-{n}@app")
    ['web-1@app', 'web-2@app']
    """
    if mistakes := check_template(template):
        raise UsageError("\n".join(mistakes))
    addresses = _free_addresses(present)
    made: list[str] = []
    for n in range(1, count + 1):
        values = {
            "n": n,
            "ip": next(addresses),
            "pid": PID + (n - 1) * PID_STEP,
            "nanos": NANOS + (n - 1) * NANOS_STEP,
        }
        client_id = template.format_map(values)
        if client_id in made or client_id in present:
            raise UsageError(
                f"client_id_template = {template!r}: {client_id!r} is there already; put a field"
                f" that differs into it, e.g. {{n}} ({', '.join(FIELDS)})"
            )
        made.append(client_id)
    return made


def check_template(template: str) -> list[str]:
    """What is wrong with a template."""
    try:
        fields = [
            (name, spec) for _, name, spec, _ in Formatter().parse(template) if name is not None
        ]
    except ValueError as error:
        return [f"client_id_template = {template!r}: {error}; write {{{{ and }}}} for braces"]
    mistakes = [
        f"client_id_template = {template!r}: unknown field {{{name}}}; known: {', '.join(FIELDS)}"
        + did_you_mean(name, FIELDS)
        for name, _ in fields
        if name not in FIELDS
    ]
    if not template:
        mistakes.append("client_id_template is empty")
    try:
        if not mistakes:
            template.format_map({"n": 1, "ip": "", "pid": 1, "nanos": 1})
    except (ValueError, TypeError) as error:
        mistakes.append(f"client_id_template = {template!r}: {error}")
    return mistakes


def _free_addresses(present: Collection[str]) -> Iterator[str]:
    """Addresses after the highest that an id begins with."""
    used = [address for c in present if (address := address_of(host_of(c))) is not None]
    yield from addresses_from(max(used) + 1 if used else FIRST_ADDRESS)
