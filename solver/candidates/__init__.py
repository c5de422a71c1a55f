"""Every way one model can run, what each carries at most, and why others were dropped."""
