"""The console, the command line and the operator of Slinky clusters."""

__version__ = "0.1.0"
