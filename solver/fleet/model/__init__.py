"""The mixed-integer programme, one function a constraint."""
