"""The scheduler extender over HTTP: server.py routes, request.py decodes, response.py encodes."""
