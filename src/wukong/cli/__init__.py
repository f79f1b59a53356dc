"""The command line: `run_script` is what the scripts `wukong` and `kubectl-wukong` call, `main` what tests do.

One module per verb lives beside this one; they are imported only when their verb is run.
"""

from wukong.cli.main import main, run_script

__all__ = ["main", "run_script"]
