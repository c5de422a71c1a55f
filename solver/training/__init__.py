"""How long a step of training takes, what it needs of each device's memory, and which layouts hold it. Standard library and numpy only."""
