"""`python -m wukong`: the command line without its installed script. Holds nothing else."""

from wukong.cli import run_script

if __name__ == "__main__":
    run_script()
