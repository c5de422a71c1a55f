"""Measured training runs: read, checked, stored, and used as anchors of later estimates."""
