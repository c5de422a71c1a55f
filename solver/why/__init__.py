"""Questions about a plan, each answered by solving a changed problem and confirming its plan by simulation."""
