"""Long work: jobs that wait in the database for a worker, on any number of machines."""
