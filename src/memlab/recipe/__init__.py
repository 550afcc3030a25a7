"""Formats and optimizer, which turn a parameter into bytes, and what several devices divide."""

from .recipe import Recipe as Recipe
from .recipe import recipes as recipes
