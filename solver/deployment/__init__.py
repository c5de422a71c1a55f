"""One deployment: what may run, on which nodes, with which bounds."""
