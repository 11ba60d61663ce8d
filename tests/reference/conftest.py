"""What the references share is imported by its name, also where they are collected alone."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
