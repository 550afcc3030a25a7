"""Slides from the cells of a chapter: what stands on them, and the page that shows them."""
