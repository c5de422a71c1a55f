"""Solver and catalog each read the number of an engine's release, since neither may know the other: they read the same."""

from hypothesis import given
from hypothesis import strategies as st

from catalog.read_serving import release_numbers
from solver.engine.releases import release

NUMBER = st.integers(0, 10_000).map(str)
NUMBERED = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(("", "v", " ", " v", "V", "vv", "release-")),
    st.lists(NUMBER, max_size=5).map(".".join),
    st.sampled_from(("", ".", "rc2", "rc1.3", ".post1", ".dev4+gabc.def", "a0", "-rc.1", "+cu12.4", " ")),
    st.sampled_from(("", " ", "\n", ".1", "\u0663.\u0664")),
)


def solver_reads(version: str) -> tuple[int, ...] | None:
    """Its first three numbers, with zeros where fewer are stated."""
    return (*release(version), 0)[:3] if release(version) else None


@given(NUMBERED | st.text(alphabet="v0123456789. rcpost-", max_size=12) | st.text(max_size=8))
def test_both_read_the_same_release(version: str) -> None:
    assert release_numbers(version) == solver_reads(version)


@given(
    st.lists(st.integers(0, 10_000), min_size=2, max_size=4), st.sampled_from(("", "rc2", ".post1", "+cu124", ".dev0"))
)
def test_what_follows_the_numbers_changes_nothing(numbers: list[int], rest: str) -> None:
    stated = ".".join(map(str, numbers))
    assert release(f"v{stated}{rest}") == tuple(numbers)
    assert release_numbers(f"{stated}{rest}") == (*numbers, 0)[:3]
