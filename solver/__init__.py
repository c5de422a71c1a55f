"""The planning mathematics: performance model, optimiser, cost model.

Pure: standard library, numpy, scipy and PuLP only. No database, HTTP, clock, environment or files.
Every quantity is in SI base units with the unit in its name (``_bytes``, ``_s``, ``_flop_per_s``,
``_bytes_per_s``, ``_w``, ``_usd_per_hour``); a fraction is ``_fraction``.
"""
