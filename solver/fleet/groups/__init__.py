"""What decides whether plans differ: groups of like offers, places, losses, and what a plan is made to contain."""
