"""The page at ``/`` and the interactive documentation at ``/docs``: files of this package, and no address of others."""
