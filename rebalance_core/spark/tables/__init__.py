"""Tables in and out: read, conformed, checked, counted, written with a digest.

May import `contracts`, `model`, `strategies` and pyspark. Begin with `read`, then `quarantine`.
"""
