"""Explanation of why a client owns a queue at a time, recomputed from a ledger's rows.

`explainer.Explainer` returns an `answer.Explanation`. `view` is one epoch as the rows show it, and
`settlement` uses `replay.settle` to determine who must hold or reach a topic's queues in it;
`client_pass` and the formula of the strategy (`strategies.formula`) give the reason.

May import: `replay`, `strategies`, `model`. Begin with `explainer`.
"""
