"""Price lists of others, read into price steps; what changed, and whose plans it touches."""
