"""The spread of a change through a group: timers, views and locks over time, in many futures.

`group_timeline` describes what happens to a group; `reference` plays a future of it event by event,
`vectorized` plays many at once, with the same result; `holdings`, `handovers` and `measured` turn
both into hand-overs. Every random number is a hash (`draws`) of its seed, its owner and its
purpose, so that nothing depends on the order of the work. Times are microseconds since the epoch.
"""
