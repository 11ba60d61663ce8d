"""Pages and pictures: markup, style, formatted numbers, and the numbers behind every picture, wherever it is drawn."""
