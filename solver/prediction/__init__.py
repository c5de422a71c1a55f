"""What a fixed deployment is predicted to do, with an interval and what it rests on."""
