"""Mounted in the place of memlab.ledger in MicroPython: as much as an engine's pool needs."""


class Row:
    def __init__(self, term, derived):
        self.term, self.derived = term, derived


class Ledger:
    def __init__(self, figures):
        self.rows = [Row(name, figures[name]) for name in figures]

    @classmethod
    def of(cls, column, figures, title=""):
        return cls(figures)
