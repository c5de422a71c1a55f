"""The one loop: solve over what replicas can at most carry, simulate what was chosen, solve again until it is true."""
