"""Files that start the servers of a stored plan."""
