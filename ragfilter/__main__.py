"""`python -m ragfilter` is the `ragfilter` command."""

from __future__ import annotations

import sys

from ragfilter.cli import main

sys.exit(main())
