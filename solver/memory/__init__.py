"""What a deployment holds: weights, cache, what fits, how many tokens."""
