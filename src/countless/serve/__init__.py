"""The HTTP service: queries to model files, and the web page that sends them; see docs/serve.md."""
