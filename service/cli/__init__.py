"""The command ``clusterwright``."""

from service.cli.main import main

__all__ = ["main"]
