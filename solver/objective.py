"""What a plan is to be best at."""

from typing import Literal

Objective = Literal["cost", "throughput", "power", "carbon"]
"""Dollars an hour; the largest multiple of the demand that is served; watts at full use; kg CO2e an hour of those."""
