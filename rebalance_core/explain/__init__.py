"""Why a queue is with this client at this time, worked out again from the rows of a ledger.

`explainer.Explainer` returns an `answer.Explanation`. ``view`` is one epoch as the rows show it,
``readable`` finds which queues members could read (``doubt``: what they only keep or list),
``settlement`` works out who must hold a queue from the ``shares`` that strategies give, ``reason``
and ``formula`` (with ``ring`` and ``room``) say why, ``start`` where its owner began to read.
Queues that members share are the matter of ``shared``.

A ledger does not say which process of several with one id holds a queue, nor which queues could be
read. So the rules are applied queue by queue here, not through `replay.settle`; a test on random
groups holds both, and the strategies, to the same answers.

May import: `replay`, `strategies`, `model`. Begin with `explainer`.
"""
