"""The hook: POST /notices says that a node is about to go. request.py reads what is sent, server.py speaks HTTP."""
