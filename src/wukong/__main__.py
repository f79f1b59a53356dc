"""`python -m wukong`: the command line without its installed script. Holds nothing else."""

import sys

from wukong.cli import main

if __name__ == "__main__":
    sys.exit(main())
