"""From ownership logs to what a change costs: hand-overs, convergence, orphan and double time.

`measured` goes through one slice of seeds: hand-overs of the seeds that are kept, and a partial
result of all (`partial`), which adds up to `propagation` the same for any split of the seeds.
Times are epoch milliseconds here, rounded down.
"""
