"""What verbs read: options, files, clusters."""
