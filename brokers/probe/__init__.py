"""Whether a folder keeps the promises that the engine stands on. See `README.md` in this folder."""
