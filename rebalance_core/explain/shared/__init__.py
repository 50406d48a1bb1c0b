"""Why a client may take messages from a queue that members share: POP, and clients behind proxies.

A ledger says who reaches which queues, and not the share number, nor whether the group is ordered,
nor, where whole brokers are popped, which queues there are. ``candidates`` finds what of these fits
the rows: lists of ``broker_queues`` that give the ``figures`` of the ledger, and share numbers
(``share_fit``). ``settlement`` works out again what each member takes, ``reason`` and
``pop_formula`` say why, ``answer`` holds it all.

May import: other modules of `explain` but `explainer`, `protocol`, `strategies`, `model`. Begin
with ``candidates``.
"""
