"""What memlab says of runs whose bytes other people posted.

python tools/posted             every reading: posted, predicted, error, or why there is none
python tools/posted --write     write book/posted-errors.json and the page's picture, which a
                                test holds to the code
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from posted import picture, stored  # noqa: E402
from posted.answers import answers, summary  # noqa: E402


def main(arguments):
    found = answers()
    if arguments == ["--write"]:
        stored.PATH.write_text(stored.text(found), encoding="utf-8")
        picture.PATH.write_text(picture.picture(), encoding="utf-8")
        return
    for a in found:
        error = "" if a.bytes is None else f"{a.error:+.2%}"
        print(f"{error:>9}  {a.reading.id}  {a.reason}")
    for group in dict.fromkeys(a.reading.group for a in found):
        print(group, *summary([a for a in found if a.reading.group == group]))
    print("all", *summary(found))


if __name__ == "__main__":
    main(sys.argv[1:])
