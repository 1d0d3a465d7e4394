"""The Kubernetes objects of a NodeSet: their names, their content, and what is read back from them. Pure."""
