"""The EndpointSlice controller: which pods of a Service are reached, and how they are."""
