"""What Kubernetes means by selectors, tolerations, node affinity, pod affinity terms, host ports and requests.

The one implementation that production uses: the engine over columns, everybody else one object at a time. `rules` reads
the same semantics independently and never imports this package: tests hold the two against each other.
"""
