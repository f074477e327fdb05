"""What the machine asks of mappings: loops, position digits, moves, tiles, and where data can live."""
