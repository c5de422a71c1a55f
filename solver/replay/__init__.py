"""Loads put through the engine's schedule, and the percentiles of long runs of them."""
