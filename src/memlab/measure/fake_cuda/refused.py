"""What cannot be rehearsed, said past every `except Exception` of a program."""


class Refused(BaseException):
    """A question that a rehearsal cannot answer: what, and where.

    No Exception: a library that catches those would quietly go another way.
    """


class Done(BaseException):
    """As many optimizer steps as were asked for have been taken."""
