"""`python -m memlab.cli`: the `memlab` command where no script is installed."""

import sys

from . import main

sys.exit(main())
