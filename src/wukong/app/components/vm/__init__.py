"""The component vm: Wukongs become KubeVirt's VirtualMachines."""

from wukong.app.components.vm.component import VM, VmOptions

__all__ = ["VM", "VmOptions"]
