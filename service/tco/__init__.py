"""Total cost of ownership: comparisons of renting, reserving, buying and calling an API."""
