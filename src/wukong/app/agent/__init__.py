"""`wukong agent`: what a cloud tells one machine of its end, written on that machine's Node.

own_node.py   reads and annotates the Node, at the API server
agent.py      asks the cloud, and keeps the annotation as the cloud says
install.py    the DaemonSet, its rights and their bounds, as documents

It runs on every spot node, so it imports little: no engine, no mirror, no aiohttp. What is done about a notice is the
component spot's business.
"""
