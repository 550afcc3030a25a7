"""What no description answers though it makes sense: a rehearsal may."""


class NotDescribed(ValueError):
    """A combination that a program can run and that is described nowhere here.

    A slip in what was asked is a plain ValueError, and nothing else is done about it.
    """
