"""The embedded cluster: an API server and a slurmrestd over one world, reached over HTTP like any cluster."""
