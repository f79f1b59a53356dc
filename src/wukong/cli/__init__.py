"""The command line: `main` is what the scripts `wukong` and `kubectl-wukong` call.

One module per verb lives beside this one; they are imported only when their verb is run.
"""

from wukong.cli.main import main

__all__ = ["main"]
