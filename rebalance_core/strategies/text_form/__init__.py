"""Strategy texts such as ``CONSISTENT_HASH(virtual_nodes=10)``: read and written.

``parser`` splits a text into name and settings, ``parameters`` reads the values of settings,
``escapes`` lets them hold the separators, ``unknown_name`` reports the nearest name.

May import: `strategies.spi` and `strategies.registry`, `model`. Begin with `parser`.
"""
