"""Mounted as `__future__` in MicroPython, which never evaluates annotations anyway."""

annotations = None
