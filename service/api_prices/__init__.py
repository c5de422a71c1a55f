"""What sellers of tokens ask, model by model."""
