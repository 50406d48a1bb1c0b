"""Simulates how a change spreads through a group: timers, views and locks over time, in many
futures.

`group_timeline` describes what happens to a group. `reference` plays one future event by event;
`vectorized` plays many at once and returns the same result. `holdings`, `handovers` and `measured`
turn either log into hand-overs. Every random number is a hash (`draws`) of its seed, its owner and
its purpose, so no result depends on the order of the work. Times are microseconds since the epoch.
"""
