"""The glossary: the terms of book/locale/terms.csv that have a sentence which explains them.

The other rows of that file are for translators alone: how a language says a common word.

`tools/book.py` puts `entries` where book/glossary.md says `<!-- glossary -->`. In another language
a term stands as that language says it, with the English one behind it.
"""

import csv


def rows(root):
    """The terms as dictionaries, in the order of their English names."""
    with (root / "book" / "locale" / "terms.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def entries(root):
    """A definition list: the term, and below it what it means."""
    return "\n\n".join(
        f"{row['en']}\n: {row['definition']}" for row in rows(root) if row["definition"]
    )


def terms(root, language):
    """How a language says each term: its first way, and the English one where that is another."""
    column = language.replace("-", "_")
    found = {}
    for row in rows(root):
        own = row.get(column, "").split("|")[0] or row["en"]
        found[row["en"]] = own if own == row["en"] else f"{own} ({row['en']})"
    return found
