"""What a mirror of many pods weighs, beside an earlier checkout: `python -m bench --memory --before DIR`.

The API server and each mirror are processes of their own; the mirror is fed by the runtime's loop over HTTP.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
SIZES = (10_000, 50_000, 150_000)
PER_NODE = 30
FIGURES = {
    "listed": "resident once all is listed",
    "steady": "with the snapshot for decisions",
    "peak_in_list": "the most during a list that comes again",
    "after_list": "after it",
}


def measure(pods: int, source: Path) -> dict[str, float]:
    """The figures of the mirror of a checkout, in kB."""
    path = {**os.environ, "PYTHONPATH": f"{source / 'src'}:{ROOT}"}
    server_command = [sys.executable, "-m", "bench.memory.api_server", str(pods), str(max(1, pods // PER_NODE))]
    with subprocess.Popen(server_command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            mirror = [sys.executable, "-m", "bench.memory.mirror", port]
            done = subprocess.run(mirror, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=path)
        finally:
            server.kill()
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    assert figures["placed"] == pods, figures
    return figures


def main(say: Callable[[str], None], before: str | None, sizes: tuple[int, ...] = SIZES) -> None:
    sources = {"now": ROOT} | ({"before": Path(before)} if before else {})
    print(f"{'':46}" + "".join(f"{name:>24}" for name in sources))
    for pods in sizes:
        columns: list[dict[str, float]] = []
        for name, source in sources.items():
            say(f"a mirror of {pods:,} pods, {name}")
            columns.append(measure(pods, source))
        print(
            f"{pods:,} pods on {max(1, pods // PER_NODE):,} nodes, in seconds".ljust(46)
            + "".join(f"{figures['seconds']:>24.1f}" for figures in columns)
        )
        for figure, title in FIGURES.items():
            print(
                f"  {title}: MB, kB per pod".ljust(46)
                + "".join(
                    f"{figures[figure] / 1024:>14,.0f} {(figures[figure] - figures['before']) / pods:>9.2f}"
                    for figures in columns
                ),
                flush=True,
            )
