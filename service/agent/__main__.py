"""``python -m service.agent``."""

import sys

from service.agent.cli import main

sys.exit(main())
