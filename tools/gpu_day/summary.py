"""All figures of the day as a text: measured beside predicted."""

from collections.abc import Iterable

from gpu_day.note import Note


def summary(notes: Iterable[Note]) -> str:
    """A block for each run: how it ended, its figures, the message that it was about."""
    lines: list[str] = []
    for note in notes:
        found = note.found()
        how = f"{found['state']} in {found['seconds']} s {found['message']}".rstrip()
        lines += ["", f"{note.run}: {how}"]
        rows = [["", "measured", "predicted", "difference", ""]]
        for name, row in found["figures"].items():
            sizes = [_cell(row[key]) for key in ("measured", "predicted", "difference")]
            rows.append([name, *sizes, row["by"]])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for name, *sizes, by in rows if found["figures"] else []:
            cells = [f"{cell:>{w}}" for cell, w in zip(sizes, widths[1:4], strict=True)]
            lines.append(f"  {name:{widths[0]}}  {'  '.join(cells)}  {by}".rstrip())
        shown = {name: words for name, words in found["texts"].items() if "\n" not in words}
        shown.pop("memory_stats", None)
        lines += [f"  {name}: {words}" for name, words in shown.items()]
    return "\n".join([*lines[1:], ""])


def _cell(size: int | None) -> str:
    return "null" if size is None else f"{size:,}"
