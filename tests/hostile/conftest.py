"""What these tests share with those of the watch: its feeders, its rude servers, its database."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))  # so that `watch.feeding` is found; last, to hide nothing
