"""Tests of what is read from real exporters and a real Prometheus."""
