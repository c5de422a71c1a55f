"""The queue of wanted measurements and the agents that take them."""
