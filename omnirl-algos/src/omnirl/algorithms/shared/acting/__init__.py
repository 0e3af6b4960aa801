"""What turns observations into actions, in numpy: networks, heads, masks, normalisation."""
