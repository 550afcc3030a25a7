"""What memlab says of runs whose bytes other people posted.

python tools/posted             every reading: posted, predicted, error, or why there is none
python tools/posted --write     write book/posted-errors.json and the page's picture, which a
                                test holds to the code
python tools/posted --record FILE           print what `memlab record` wrote as such a source
python tools/posted --trace [NAME ...]      write book/posted-traces.json: see posted/traced.py
python tools/posted --reserved  write book/posted-reserved.json: see posted/torchtune_reserved.py
python tools/posted --compiled  write book/posted-compiled.json: see posted/torchtune_compiled.py
python tools/posted --band      write book/posted-band.json: see posted/band.py
python tools/posted --unseen    write today's answers into book/posted-unseen.json: see
                                posted/unseen; first answers stay as they are
"""

import sys
from pathlib import Path

# In the place of this folder, whose peft.py would stand before the library.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from posted import own, picture, stored, traced  # noqa: E402
from posted.answers import answers, summary  # noqa: E402


def main(arguments):
    if arguments[:1] == ["--trace"]:
        traced.write(arguments[1:])
        return
    if arguments in (["--reserved"], ["--compiled"]):
        from posted import torchtune_compiled, torchtune_reserved  # which need torch

        (torchtune_reserved if arguments == ["--reserved"] else torchtune_compiled).write()
        return
    if arguments == ["--band"]:
        from posted import band

        band.write()
        return
    if arguments == ["--unseen"]:
        from posted.unseen import answers as unseen

        unseen.write()
        return
    if arguments[:1] == ["--record"]:
        print(own.text(arguments[1]), end="")
        return
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
