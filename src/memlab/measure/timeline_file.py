"""The record of a watched program: `memlab.watch.timeline_file`, which needs no torch."""

from ..watch.timeline_file import read_timeline as read_timeline
