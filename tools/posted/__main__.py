"""What memlab says of runs whose bytes other people posted.

    python tools/posted             every reading: posted, predicted, error, or why there is none
    python tools/posted --write     write book/posted-errors.json, which a test holds to the code
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from posted.answers import answers, summary  # noqa: E402
from posted.readings import ROOT  # noqa: E402

STORED = ROOT / "book" / "posted-errors.json"


def stored(found):
    """What the file holds: of each reading the predicted bytes and why it is not counted."""
    rows = {a.reading.id: [a.bytes, a.reason] for a in found}
    lines = ",\n".join(f" {json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
    return "{\n" + lines + "\n}\n"


def main(arguments):
    found = answers()
    if arguments == ["--write"]:
        STORED.write_text(stored(found), encoding="utf-8")
        return
    for a in found:
        error = f"{a.error:+8.2%}" if a.bytes is not None else "        "
        print(f"{error}  {a.reading.id}  {a.reason}")
    for group in dict.fromkeys(a.reading.group for a in found):
        print(group, summary([a for a in found if a.reading.group == group]))
    print("all", summary(found))


if __name__ == "__main__":
    main(sys.argv[1:])
