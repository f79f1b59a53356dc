"""What is installed in a cluster, as plain documents: the parts that every component's installation is made of.

installation.py  what every installation is told, and the labels of its objects
certificates.py  the keys of mutual TLS
rbac.py          accounts and rights, from the permissions of components
workload.py      how pods on the way of every pod must be run
text.py          documents as YAML

What is particular to a component is in its own package, such as app/components/extender/install.
"""
