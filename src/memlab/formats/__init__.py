"""How numbers are kept in memory: formats by name, each with its source."""

from .formats import Format as Format
from .formats import bits_per_value as bits_per_value
from .formats import bytes_per_value as bytes_per_value
from .formats import format_of as format_of
from .formats import names as names
from .formats import storage as storage
