"""Tests of the whole: real server, real kernel, real playbook."""
