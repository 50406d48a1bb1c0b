"""Many producers over time, from a model of brokers or from recorded results.

One simulated producer is one thread that sends in the mode SYNC at a fixed pace. A send that fails
or takes `SLOW_MS` and more holds the thread until it ends; the messages that were due meanwhile are
held back and not sent. Faster sends take no time. Begin with `model`, then `producer_run`.
"""
