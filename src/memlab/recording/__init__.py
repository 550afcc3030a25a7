"""The suite of `memlab record`: small runs, each predicted without the device that it runs on."""

from .recorded_rows import beside as beside
