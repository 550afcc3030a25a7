"""One line at the bottom of a terminal that says what the program holds now.

The rest of the terminal scrolls above it, so that the program's own output, and a progress bar of
its own, stay as they are. Terminals have done this since the VT100: a region that scrolls
(DECSTBM), and a cursor that is remembered (DECSC, DECRC).
"""

from __future__ import annotations

import os

ESC = "\x1b"


class Live:
    """Draws on a terminal, and does nothing where `terminal` is not one (or cannot do it).

    able, muted     whether it could draw, and whether it was told not to
    """

    def __init__(self, terminal: int = 2) -> None:
        able = os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        self._terminal = terminal if able and os.isatty(terminal) else None
        self._rows = 0
        self.able, self.muted = self._terminal is not None, False

    def draw(self, words: str) -> None:
        """Show the words, cut to the width there is."""
        if self._terminal is None:
            return
        try:
            columns, rows = os.get_terminal_size(self._terminal)
            if rows < 4:
                return
            lines = ""
            if rows != self._rows:  # the first time, or the window has another size now
                # A new line at the bottom makes room; the cursor goes back to where it was.
                lines = f"\n{ESC}7{ESC}[1;{rows - 1}r{ESC}8{ESC}[1A"
                self._rows = rows
            shown = words[: columns - 1].ljust(columns - 1)
            lines += f"{ESC}7{ESC}[{rows};1H{ESC}[7m{shown}{ESC}[0m{ESC}8"
            os.write(self._terminal, lines.encode())
        except OSError:  # the terminal is gone
            self._terminal = None

    def mute(self) -> None:
        """Draw nothing from now on."""
        self.close()
        self._terminal, self.muted = None, True

    def close(self) -> bool:
        """Clear the line and let the whole terminal scroll again; whether there was a line."""
        if self._terminal is None or not self._rows:
            return False
        lines = f"{ESC}7{ESC}[r{ESC}[{self._rows};1H{ESC}[2K{ESC}8"
        self._rows = 0
        try:
            os.write(self._terminal, lines.encode())
        except OSError:
            self._terminal = None
        return True
