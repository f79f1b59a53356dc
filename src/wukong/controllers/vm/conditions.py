"""The conditions of a Wukong, by their types. Used by status.py and controller.py.

Accepted         it is understood; else every problem with its path, and nothing of what runs is changed
Bootable         there is a disk to start from
Placed           every virtual machine that is to run has a node; else why not, and the smallest change that helps
Ready            every virtual machine that it asks for is ready
RestartRequired  a change waits for a restart, or for the next pod of a virtual machine
"""

ACCEPTED, BOOTABLE, PLACED, READY = "Accepted", "Bootable", "Placed", "Ready"
RESTART_REQUIRED = "RestartRequired"
