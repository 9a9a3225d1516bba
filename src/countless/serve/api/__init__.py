"""The HTTP interface: routes, request and response schemas, checks and errors."""
