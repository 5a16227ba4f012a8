"""`python -m strided …` is the `strided` command."""

import sys

from strided.cli import main

sys.exit(main())
