"""Training and fine-tuning: how long a step takes and what it needs, and which machines to rent for a job."""
