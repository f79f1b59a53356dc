"""What clouds tell a machine of its own end, one module for each: what is asked, and how answers are read.

cloud.py     what all have in common: a notice, an error, one question
aws.py  gcp.py  azure.py  alibaba.py

Used by `wukong agent`. Reading answers is pure and apart from asking. Nothing here knows of Kubernetes.
"""
