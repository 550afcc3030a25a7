"""memlab's figure of a loop of which nothing is said, and the real trainer as it comes."""

import pytest

from memlab import Model, Run
from memlab.lab.trainers import CONFIG, highest
from memlab.step import Lora, simulate

# Of the libraries, about each other.
pytestmark = pytest.mark.filterwarnings("ignore")
ALL = ("q", "k", "v", "o", "gate", "up", "down")
PUBLISHED = CONFIG | {"dtype": "bfloat16", "intermediate_size": 192}
