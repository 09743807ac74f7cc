"""Drawings out of values: SVG without style or script, and without input or output."""
