"""The commands of `./run remote`, by what they are about; each file adds its own to the parser."""
