"""What an API server asks before it stores an object: pods get what their policy says, our own kinds are checked."""
