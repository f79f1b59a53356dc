"""The vm controller: Wukongs become KubeVirt's VirtualMachines, and how those fare is told on the Wukong's status."""
