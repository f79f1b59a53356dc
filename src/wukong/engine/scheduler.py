"""The engine's entry point: a snapshot, a profile and a tie-breaker; pods in, decisions out."""

from __future__ import annotations

from wukong.api.core import Pod
from wukong.api.profile import Profile, default_profile
from wukong.engine.decide import decide
from wukong.engine.decision import Decision
from wukong.engine.place import place_many, place_one
from wukong.engine.plugins.registry import PLUGINS
from wukong.engine.snapshot import Snapshot
from wukong.engine.template import Template
from wukong.engine.ties import FIRST_BY_NAME, Ties
from wukong.engine.view import Plugins, View


class Scheduler:
    """Decides on one snapshot. Cheap to make; compiled pods are kept by the snapshot."""

    def __init__(
        self,
        snapshot: Snapshot,
        profile: Profile | None = None,
        *,
        ties: Ties = FIRST_BY_NAME,
        plugins: Plugins = PLUGINS,
    ) -> None:
        self.snapshot = snapshot
        self.profile = profile or default_profile()
        self.ties = ties
        self.plugins = plugins

    def view_of(self, pod: Pod) -> View:
        """The pod compiled against the snapshot. Look-alike pods share one view, which the snapshot keeps current."""
        template, node_name = self.snapshot.table.intern(pod), pod.spec.node_name
        key = (template.number, id(self.profile), node_name)
        view = self.snapshot.views.get(key)
        if view is None:
            self.snapshot.make_room_for_view()
            view = self.snapshot.views[key] = self.compile(template, node_name)
        return view

    def compile(self, template: Template, node_name: str = "") -> View:
        """A view of its own, which the snapshot does not keep: for pods that are only tried out."""
        return View(self.snapshot, template, self.profile, self.plugins, node_name)

    def decide(self, pod: Pod) -> Decision:
        """What would happen to this pod, in full. Places nothing."""
        return decide(self.view_of(pod))

    def place(self, pod: Pod, key: str = "") -> str | None:
        """Place one pod (as `key`, default its own namespace/name); returns the node, or None if it fits nowhere."""
        row = place_one(self.view_of(pod), key or pod.key, self.ties)
        return None if row is None else self.snapshot.rows[row].name

    def place_many(self, pod: Pod, count: int, key: str = "") -> list[str]:
        """Place up to `count` pods like this one, named key-0, key-1, ...; returns the nodes of those that fit."""
        prefix = key or pod.key
        rows = place_many(self.view_of(pod), [f"{prefix}-{number}" for number in range(count)], self.ties)
        return [self.snapshot.rows[row].name for row in rows]
