"""`memlab watch`: run a program, write down its memory, and stop it at a limit.

Nothing here imports torch: the guard has to be small, quick to start, and good for any program.
What a torch program can add by itself, the tensors that were alive, is `memlab.measure.announce`.

    limits          20GiB, 90%: what was asked for, held against what there is
    samplers        what the program holds: processes by /proc or psutil, cards by the driver
    tree            every process that the program started, and how to stop them all
    program         start it, pass signals (`signals`) and the terminal on
    opted           what a program that opted in said of its tensors
    timeline_file   the record, read again; `timeline_writer` writes it
    record          the timeline as JSON and as a picture
    live            the line at the bottom of a terminal
    guard           look, write down, warn, stop
    run             what was asked for, checked, and all of it together
"""
