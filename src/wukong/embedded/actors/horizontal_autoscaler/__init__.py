"""The HorizontalPodAutoscaler controller: as many replicas as usage asks for."""
