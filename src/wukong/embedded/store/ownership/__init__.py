"""Field managers and server-side apply."""
