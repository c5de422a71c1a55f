"""What recorded requests say of a workload: arrivals, lengths, sessions, and what a cache of prefixes makes of them."""
