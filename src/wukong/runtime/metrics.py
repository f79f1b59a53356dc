"""What Wukong says about itself to Prometheus. Kept by `loop`, `leader` and the servers, served by serve.probes.

No object names as labels: series must not grow with the cluster. Each Metrics has a registry of its own.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4"
_SECONDS = (0.0001, 0.001, 0.01, 0.1, 0.5, 1, 5)
_EXTENDER_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)


class Metrics:
    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.reconcile_seconds = Histogram(
            "wukong_reconcile_seconds",
            "Time to decide about one key",
            ["controller"],
            registry=registry,
            buckets=_SECONDS,
        )
        self.actions = Counter(
            "wukong_actions_total", "Actions performed, by kind and result", ["action", "result"], registry=registry
        )
        self.gate = Counter(
            "wukong_gate_total",
            "Acts that take a pod or a node away, by act and what the gate said",
            ["act", "result"],
            registry=registry,
        )
        self.queue_length = Gauge("wukong_queue_length", "Keys waiting for their turn", registry=registry)
        self.leader = Gauge("wukong_leader", "1 while this instance leads", registry=registry)
        self.mirror_objects = Gauge("wukong_mirror_objects", "Objects mirrored, by kind", ["kind"], registry=registry)
        self.unreadable_objects = Gauge(
            "wukong_unreadable_objects",
            "Objects that could not be read and so are not mirrored, by kind",
            ["kind"],
            registry=registry,
        )
        self.mirror_age = Gauge(
            "wukong_mirror_age_seconds",
            "Seconds since the API server last said anything about a kind",
            ["kind"],
            registry=registry,
        )
        self.watch_restarts = Counter(
            "wukong_watch_restarts_total",
            "Lists and watches that broke and were begun again",
            ["kind"],
            registry=registry,
        )
        self.connections = Gauge(
            "wukong_server_connections", "Open connections, by what is served", ["server"], registry=registry
        )
        self.connections_dropped = Counter(
            "wukong_server_connections_dropped_total",
            "Connections closed to make room for others",
            ["server"],
            registry=registry,
        )
        self.meter_failures = Counter(
            "wukong_meter_failures_total", "Times the meter of usage gave no answer", registry=registry
        )
        self.meter_samples_skipped = Counter(
            "wukong_meter_samples_skipped_total", "Samples of usage that made no sense", registry=registry
        )

    def count_gate(self, act: str, result: str) -> None:
        self.gate.labels(act, result).inc()

    def text(self) -> bytes:
        """Everything in the format Prometheus reads."""
        return generate_latest(self.registry)


class ExtenderMetrics:
    """How the scheduler extender does; in the registry of the others."""

    def __init__(self, metrics: Metrics) -> None:
        self.seconds = Histogram(
            "wukong_extender_seconds",
            "Time from a request's headers to its answer",
            ["verb"],
            registry=metrics.registry,
            buckets=_EXTENDER_SECONDS,
        )
        self.requests = Counter(
            "wukong_extender_requests_total",
            "Requests answered, by verb and status code",
            ["verb", "code"],
            registry=metrics.registry,
        )

    def record_answer(self, verb: str, code: int, seconds: float) -> None:
        self.seconds.labels(verb).observe(seconds)
        self.requests.labels(verb, str(code)).inc()


class AdmissionMetrics:
    """How the admission webhooks do; in the registry of the others."""

    def __init__(self, metrics: Metrics) -> None:
        self.seconds = Histogram(
            "wukong_admission_seconds",
            "Time from a request's headers to its answer",
            ["webhook"],
            registry=metrics.registry,
            buckets=_EXTENDER_SECONDS,
        )
        self.requests = Counter(
            "wukong_admission_requests_total",
            "Objects reviewed, by what became of them",
            ["result"],
            registry=metrics.registry,
        )

        self._of_webhook: dict[str, Histogram] = {}  # to look up a series takes as long as to count
        self._of_result: dict[str, Counter] = {}

    def record_answer(self, webhook: str, result: str, seconds: float) -> None:
        histogram, counter = self._of_webhook.get(webhook), self._of_result.get(result)
        if histogram is None or counter is None:
            histogram = self._of_webhook[webhook] = self.seconds.labels(webhook)
            counter = self._of_result[result] = self.requests.labels(result)
        histogram.observe(seconds)
        counter.inc()
