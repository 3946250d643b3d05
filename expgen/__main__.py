"""`python -m expgen`: the command line."""

import sys

from expgen.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
