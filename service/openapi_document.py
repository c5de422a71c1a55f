"""The application whose OpenAPI document describes every parameter and has an example of every body.

Fields are described by their models.
"""

from typing import Any

from fastapi import FastAPI

from service.wire.examples import add_examples
from service.wire.field_descriptions import descriptions

PARAMETERS = "parameters"
"""The table of ``fields.toml`` that describes parameters of addresses and headers."""


class DescribedApi(FastAPI):
    """FastAPI, but for the descriptions and examples: a parameter of one name means the same in every route."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is not None:
            return self.openapi_schema
        document = super().openapi()
        known: dict[str, str] = descriptions()[PARAMETERS]
        for item in document["paths"].values():
            for route in item.values():
                for parameter in route.get("parameters", ()):
                    if parameter["name"] in known:
                        parameter.setdefault("description", known[parameter["name"]])
        add_examples(document)
        return document
