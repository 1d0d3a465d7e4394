"""The NodeSet controller: one look at the world, a pure decision, effects that carry it out."""
