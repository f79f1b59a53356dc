"""Kubernetes objects as typed structs, and exact quantities. Row 0: imports nothing of Wukong but errors."""

from wukong.api.kinds import KINDS
from wukong.api.objects import Objects
from wukong.api.quantity import format_amount, parse_quantity, scheduler_amount

__all__ = ["KINDS", "Objects", "format_amount", "parse_quantity", "scheduler_amount"]
