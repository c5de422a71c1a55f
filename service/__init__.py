"""The service: HTTP, SQL and the command line around the solver.

Inside a resource folder the way is ``routes → verb → queries → tables``; ``wire`` holds the JSON shapes.
"""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("clusterwright")
except PackageNotFoundError:  # a checkout that was never installed
    VERSION = "0+checkout"
