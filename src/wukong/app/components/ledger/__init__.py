"""The component ledger: numbers of replicas, recorded once they are truly available."""

from wukong.app.components.ledger.component import LEDGER

__all__ = ["LEDGER"]
