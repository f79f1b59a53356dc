"""The node lifecycle controller: nodes that fall silent."""
