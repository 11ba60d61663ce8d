"""The paper, reproduced: its simulation, its tables and figures beside the published ones, and what was found.

D. J. Sumler, L. Devlin, S. Maskell and R. O. Lane, "An Entropic Metric for Measuring Calibration of Machine Learning
Models", arXiv 2502.14545. ``safecal paper --help`` offers the same on the command line. This package lies outside the
stability promise.
"""

from .cells import beside
from .column_checks import ColumnCheck, check_column, checks_text
from .demonstrations import Modelled, StateCase, models_text, nees_demonstration, nees_text, three_models
from .figures import ECDRange, ecd_range, paper_figures, write_figures
from .pages import read_study, study_text, write_study
from .processes import Match, find_draws
from .published import PublishedColumn, joint_reading, published_table1, published_table2, readings_text
from .real_models import RealModel, Table2, table2, table2_models, write_table2
from .simulated_table import Replications, Table1, replicate_table1, table1
from .simulation import Simulation, paper_draws, simulate
from .study import Score, Study, run_study

__all__ = [
    "ColumnCheck",
    "ECDRange",
    "Match",
    "Modelled",
    "PublishedColumn",
    "RealModel",
    "Replications",
    "Score",
    "Simulation",
    "StateCase",
    "Study",
    "Table1",
    "Table2",
    "beside",
    "check_column",
    "checks_text",
    "ecd_range",
    "find_draws",
    "joint_reading",
    "models_text",
    "nees_demonstration",
    "nees_text",
    "paper_draws",
    "paper_figures",
    "published_table1",
    "published_table2",
    "read_study",
    "readings_text",
    "replicate_table1",
    "run_study",
    "simulate",
    "study_text",
    "table1",
    "table2",
    "table2_models",
    "three_models",
    "write_figures",
    "write_study",
    "write_table2",
]
