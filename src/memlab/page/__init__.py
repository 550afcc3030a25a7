"""What the page's calculator runs: plain functions over the tested core, also in MicroPython."""
