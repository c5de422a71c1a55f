"""Sourced facts in files, and the little Python that reads them.

Datasheet units, with the unit in every name; each figure has a source, a date and how it was checked.
Knows neither the service nor the solver.
"""
