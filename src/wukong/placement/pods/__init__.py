"""What a policy makes of a pod as it is created. Row 2, pure: documents in and out.

split        which pods of an owner are on demand, and which on spot nodes
rules        what a policy adds to pods, ready to be put in
mark         the annotation that says what was decided
build        the pod as it shall be created
outline      what of a pod decides what is added to it
priority     the PriorityClasses that policies ask for
"""

from wukong.placement.pods.build import PodChange as PodChange
from wukong.placement.pods.build import build_pod as build_pod
from wukong.placement.pods.build import find_pod_problem as find_pod_problem
from wukong.placement.pods.mark import MARK as MARK
from wukong.placement.pods.mark import Mark as Mark
from wukong.placement.pods.mark import find_marked_strategy as find_marked_strategy
from wukong.placement.pods.mark import read_mark as read_mark
from wukong.placement.pods.outline import shorten_pod as shorten_pod
from wukong.placement.pods.priority import build_policy_class as build_policy_class
from wukong.placement.pods.priority import policy_class_name_of as policy_class_name_of
from wukong.placement.pods.split import ON_DEMAND as ON_DEMAND
from wukong.placement.pods.split import SPOT as SPOT
from wukong.placement.pods.split import CapacityCounts as CapacityCounts
from wukong.placement.pods.split import divide as divide
from wukong.placement.pods.split import find_misplaced as find_misplaced
from wukong.placement.pods.split import split as split
