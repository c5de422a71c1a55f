"""The worker agent: measures engines where they run and uploads what it saw.

It runs on a GPU host with Python alone, so it imports the standard library, httpx, pydantic and `service.wire` only.
"""

from service import VERSION

__all__ = ["VERSION"]
