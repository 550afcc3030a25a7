"""A test that memlab could not see: readings that nobody had worked on when it was asked.

Each mapping was written from its source's own text and programs and committed before memlab was
asked about any of its rows. The first answers are in book/posted-unseen.json and stay there.
"""
