"""The component admission: the label by which its Service finds the pod that leads."""
