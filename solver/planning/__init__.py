"""What a recommendation is made from and what it says; the fleet problem between the two."""
