"""JSON shapes of the API. Standard library and pydantic only: the worker agent uses them too.

Requests refuse unknown fields. Responses have no defaults: whatever is not filled in fails loudly in tests.
"""
