"""The service: questions about model files over HTTP, and the page that asks them. See docs/serve.md."""
