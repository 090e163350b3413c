"""Published figures, model presets and terms, each with its source and date."""
