"""The report of a plan: one HTML file that needs nothing else. Called by verbs/plan.py for --report."""

from wukong.cli.views.report.page import render_report

__all__ = ["render_report"]
