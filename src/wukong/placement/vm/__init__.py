"""A Wukong → KubeVirt's VirtualMachines. Row 2, pure.

build, domain, affinity, node_affinity, merge    the document, one idea each
settings                                         what the operator chooses
priority                                         the shared PriorityClasses
problems                                         what is wrong with a Wukong
changes                                          what a change means for machines that run
"""

from wukong.placement.free_labels import free_amount as free_amount
from wukong.placement.free_labels import free_label_of as free_label_of
from wukong.placement.free_labels import free_label_value as free_label_value
from wukong.placement.vm.build import build_virtual_machine as build_virtual_machine
from wukong.placement.vm.build import is_bootable as is_bootable
from wukong.placement.vm.changes import ChangeEffect as ChangeEffect
from wukong.placement.vm.changes import find_change_effects as find_change_effects
from wukong.placement.vm.node_affinity import find_floors as find_floors
from wukong.placement.vm.priority import build_priority_class as build_priority_class
from wukong.placement.vm.priority import priority_class_name_of as priority_class_name_of
from wukong.placement.vm.problems import find_wukong_problems as find_wukong_problems
from wukong.placement.vm.settings import VmSettings as VmSettings
