"""The service, its worker agent and its installation under attack: commands that print the figures of docs/security.md."""
