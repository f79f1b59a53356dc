"""The garbage collector: objects whose owners are gone."""
