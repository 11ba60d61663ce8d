"""Pages and pictures: markup, numbers, style, and what every picture shows, wherever it is drawn."""
