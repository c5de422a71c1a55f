"""The largest rate that a replica sustains within its targets."""
