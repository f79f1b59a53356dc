"""The ResourceQuota controller: it counts what a namespace holds."""
