"""`memlab watch`: run a program, write down its memory, and stop it at a limit.

Nothing here imports torch: the guard has to be small, quick to start, and good for any program.
What a torch program can add by itself, the tensors that were alive, is `memlab.measure.announce`.

    limits          20GiB, 90%: what was asked for, held against what there is
    samplers        what the program holds: processes by /proc or psutil, cards by the driver
    tree            every process that the program started, and how to stop them all
    program         start it, pass signals and the terminal on
    timeline_file   the record, read again; `timeline_writer` writes it
    live            the line at the bottom of a terminal
    run             all of it together
"""
