"""Scenarios played on a real cluster, in real time: what `wukong sim run --kubeconfig` does."""

from __future__ import annotations

from wukong.app.sim_live.player import LivePlayer, Options, play_live

__all__ = ["LivePlayer", "Options", "play_live"]
