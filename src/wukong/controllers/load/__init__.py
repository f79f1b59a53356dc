"""The component load: node usage kept on node labels."""
