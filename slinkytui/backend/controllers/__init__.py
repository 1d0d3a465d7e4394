"""The operator's controllers. `runtime` runs them and knows no resource; beside it one folder for each resource."""
