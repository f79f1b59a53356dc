"""Advice: the smallest changes that make a change safe, each played before it is shown. One file per candidate."""

from wukong.forecast.advice.candidate import Candidate, Loss
from wukong.forecast.advice.search import find_advice

__all__ = ["Candidate", "Loss", "find_advice"]
