"""Plug-ins for other libraries: they take their objects, and return theirs. Each module needs its library."""
