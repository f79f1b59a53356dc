"""Who binds, makes and deletes volumes: the volume controller, an external provisioner, the ephemeral controller."""
