"""What memlab says of runs whose bytes other people posted.

python tools/posted             every reading: its command, and how far the figure is from it
python tools/posted --write     ask all again and write every stored figure of the page: commands
                                (posted/asked), each source's own terms, today's answers of unseen
                                sources (first answers stay), the picture, README's sentence; some
                                minutes. Tests hold them to the code
python tools/posted --record FILE           print what `memlab record` wrote as such a source
python tools/posted --trace [NAME ...]      write book/posted-traces.json: see posted/traced.py
python tools/posted --reserved  write book/posted-reserved.json: see posted/torchtune_reserved.py
python tools/posted --compiled  write book/posted-compiled.json: see posted/torchtune_compiled.py
python tools/posted --band      write book/posted-band.json: see posted/band.py
"""

import sys
from pathlib import Path

# In the place of this folder, whose peft.py would stand before the library.
sys.path[0] = str(Path(__file__).resolve().parent.parent)

from posted import headline, own, picture, stored, traced  # noqa: E402
from posted.answers import answers  # noqa: E402
from posted.asked import answers as asked  # noqa: E402
from posted.unseen import answers as unseen  # noqa: E402


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
    if arguments[:1] == ["--record"]:
        print(own.text(arguments[1]), end="")
        return
    if arguments == ["--write"]:
        asked.write()
        unseen.write()
        stored.PATH.write_text(stored.text(answers()), encoding="utf-8")
        picture.PATH.write_text(picture.picture(), encoding="utf-8")
        headline.README.write_text(headline.readme(), encoding="utf-8")
        return
    for a in (a for found in asked.stored() for a in found):
        told = a.reason if a.bytes is None else f"{a.error:+.2%}"
        print(f"{a.reading.id}\n    {a.command or '-'}\n    {told}")


if __name__ == "__main__":
    main(sys.argv[1:])
