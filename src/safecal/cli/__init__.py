"""The command line: ``safecal evaluate FILE`` and its companions."""
