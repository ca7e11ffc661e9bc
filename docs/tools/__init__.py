"""What makes the generated pages and pictures of the documentation; `docs/generate.py` and `docs/capture.py` run it."""
