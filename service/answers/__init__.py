"""What solving answers and is stored whole: recommendations and fleets over time are two kinds of one thing."""
