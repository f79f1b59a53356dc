"""How long kube-controller-manager's controllers wait after a failure: at first shorter than ours, in the end longer.

Declared by actors as `backoff` and read by runtime/dispatch.py. Follows client-go's DefaultTypedControllerRateLimiter;
its second half, ten retries a second of all keys together, is not played.
"""

from __future__ import annotations

from wukong.runtime.queue import Backoff

CONTROLLER_BACKOFF = Backoff(first=0.005, cap=1000.0, spread=0.0)
SERVICE_BACKOFF = Backoff(first=1.0, cap=1000.0, spread=0.0)  # of EndpointSlices: defaultSyncBackOff
JOB_BACKOFF = Backoff(first=1.0, cap=60.0, spread=0.0)  # DefaultJobApiBackOff, MaxJobApiBackOff
