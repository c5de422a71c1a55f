"""Filters of lists: a value that nothing has is a mistake, and an empty list would hide it."""

from collections.abc import Callable, Collection

from service.problems import FieldError, InvalidFieldsError, unknown_name


def refuse_unknown_filters(known_values: Callable[[str], Collection[str]], **stated: str | None) -> None:
    """For a list that came out empty. Raises InvalidFieldsError naming each filter whose value nothing has, with near ones.

    known_values: what there is of one filter. Values are compared without regard to case.
    """
    errors = []
    for name, value in stated.items():
        if value is None:
            continue
        known = known_values(name)
        if value.lower() not in {one.lower() for one in known}:
            errors.append(FieldError(unknown_name(name, value, known), parameter=name))
    if errors:
        raise InvalidFieldsError(errors)
