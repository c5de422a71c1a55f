"""Measured against predicted: fits the physical constants, and says how far predictions can be trusted."""
