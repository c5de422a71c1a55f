"""The application whose OpenAPI document describes every parameter; fields are described by their models."""

from typing import Any

from fastapi import FastAPI

from service.wire.field_descriptions import descriptions

PARAMETERS = "parameters"
"""The table of ``fields.toml`` that describes parameters of addresses and headers."""


class DescribedApi(FastAPI):
    """FastAPI, but for the descriptions: a parameter of one name means the same in every route."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        known: dict[str, str] = descriptions()[PARAMETERS]
        for item in document["paths"].values():
            for route in item.values():
                for parameter in route.get("parameters", ()):
                    if parameter["name"] in known:
                        parameter.setdefault("description", known[parameter["name"]])
        return document
