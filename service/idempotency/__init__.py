"""``Idempotency-Key``: a request that is sent again, because its answer was lost, stores nothing twice."""
