"""The verbs of the command line, one module each; cli/main.py lists them."""
