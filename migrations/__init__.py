"""Schema versions, applied by ``clusterwright migrate`` (Alembic)."""
