"""What alternatives cost over a horizon: rent, commit, buy, or call an API.

Pure and deterministic: draws come from a generator seeded by the caller. Money is US dollars; a tariff keeps its
trade unit (``_usd_per_kwh``, ``_usd_per_kw_month``) because it is a price, not a physical quantity. Rates are
fractions per year. Every formula works on one number or on an array of draws.

Time: column 0 of a cash flow is the start, column k the end of month k. Outlays for machines fall at the start of
the month that needs them, bills at its end.
"""
