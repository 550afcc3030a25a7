"""Mounted in the place of memlab.base.mapping in MicroPython.

There an instance of a class below `dict` equals no dict, whatever it holds. That nothing changes
later is CPython's to see.
"""

FrozenDict = dict
