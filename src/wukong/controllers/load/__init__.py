"""The component load: what is in use and what is free of each node, kept on its labels."""
