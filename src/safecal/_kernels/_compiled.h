/* What the parts of the compiled kernel share. */

#ifndef SAFECAL_COMPILED_H
#define SAFECAL_COMPILED_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define CHUNK 1024
#define LANES 8
#define RUN 256 /* rows summed together: a lane has 32 of them, and 2**-32 is far from 0 */
#define WORD 8 /* bytes of a whole number, the lowest of which tells an outcome */
#define SUMS 9
#define COLUMNS 11 /* the sums and two counts */
#define WEIGHTED_SUMS 18
#define MOST_KEYS 256
#define SCORES 7
#define MOST_DIMENSIONS 8

#define CELLS 450 /* of the log-odds, as in `spectrum.py`; each has four kinds of rows, by wrong and by positive */
#define MOMENTS 4 /* of a kind: n and the sums of d, d^2, d^3 */
#define AT_NODES 20 /* sums of a key: at five nodes, R and three derivatives, as in `spectrum.py` */
#define KINDS (4 * CELLS)
#define TEMPERED 4 /* sums over points at one inverse temperature: log-partition, and three cumulants */
#define POINT_SUMS 11 /* sums of the points of a place in the order of probabilities */
#define LEAST_BETA 1e-9 /* so that classes that are impossible have no weight */
#define GAP_COLUMNS 4 /* of rows of classes at one inverse temperature */
#define LOGISTIC 6 /* sums of a logistic regression: what is lost, two first derivatives, three second ones */

typedef struct {
    const void *values;      /* probabilities, or log-odds where `logits`; floats where `single` */
    const uint8_t *happened; /* not 0 where the positive outcome did; each `step` bytes, 1 or WORD */
    const double *weight;    /* of each row; or NULL */
    const double *edges;     /* of uniform bins, of the probability or of the `confidence`; or NULL */
    const int64_t *index;    /* the key of each row; or NULL */
    double *sums;            /* (keys, COLUMNS + 2 or WEIGHTED_SUMS + 2) */
    double *spectrum;        /* (KINDS, MOMENTS); or NULL */
    double *nodes;           /* (keys, AT_NODES), of rows without weights; or NULL */
    Py_ssize_t n, step;
    int32_t keys;
    int single, logits, confidence;
} BinaryRows;

/* Rows are marked: the smaller probability m of a row is at most 1/2, so the two highest bits of its float are free.
   The sign bit is set where the less likely outcome happened, the next bit where the likelier one is the positive. */
typedef struct {
    double m[CHUNK], L[CHUNK]; /* of a chunk: marked m; the log-odds of the likelier outcome, where they were given */
    int32_t key[CHUNK];
    double run_L[RUN], run_weight[RUN]; /* of a run */
    int64_t count[MOST_KEYS], impossible[MOST_KEYS], certain;
    double *total;       /* (keys, WEIGHTED_SUMS, LANES) */
    uint64_t *seen;      /* (keys, 2, LANES): rows that are wrong, rows whose outcome is the positive one */
    double *nodes;       /* (keys, AT_NODES, LANES) */
    double *queue, *queued_L, *queued_weight; /* (keys, RUN) */
    int32_t next[MOST_KEYS]; /* where in the queue the next row of a key takes its place */
    double *spectrum;    /* (KINDS + 1, MOMENTS) of the latest rows; certain ones are in no cell, and come last */
    int32_t in_spectrum; /* how many the latest rows are */
} BinaryWork;

/* Fill m, L and key of a chunk of n rows; return 0 where a row is not for the formulas. */
int safecal_to_odds(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n);

/* The log-odds of marked rows, up to the next multiple of LANES; 0 where m is 0. */
void safecal_log_odds(const double *marked, Py_ssize_t n, double *L);

/* Add a run of rows of one key to its sums and to the spectrum; up to the next multiple of LANES, the columns are filled
   with zeros. */
void safecal_add_run(const BinaryRows *rows, BinaryWork *work, double *m, double *L, double *weight, int32_t n,
                     int32_t key);

/* The spectrum: add marked rows, and put the sums of the latest rows into the result. */
void safecal_add_spectrum(const BinaryRows *rows, BinaryWork *work, const double *marked, const double *L, int32_t n);
void safecal_keep_spectrum(const BinaryRows *rows, BinaryWork *work);

/* R and its derivatives at the nodes: add marked rows of one key, in lanes. */
void safecal_add_nodes(const double *marked, const double *L, Py_ssize_t n, double *total);

/* The sums of rows of a logistic regression, at a shift and a slope; `away` is -1 where it happened, else 1. */
void safecal_add_logistic(double shift, double slope, const double *z, const double *away, const double *mass,
                          Py_ssize_t n, double *total);

/* Add all rows; return the number of certain ones, -1 where a row is not for the formulas, -2 without memory. */
int64_t safecal_add_binary(const BinaryRows *rows);

typedef struct {
    const double *L, *n;             /* log-odds of the likelier outcome, and how many rows each point stands for */
    const uint8_t *wrong, *positive; /* whether the other one happened, and whether the likelier is the positive one */
    const int64_t *cell;             /* of the log-odds */
    Py_ssize_t count;
} PointRows;

/* Two points for each set of rows, or one where they are alike, of its moments; there are `each` sets in a cell. First all
   that are the first of their set, then the others; return how many they are. */
Py_ssize_t safecal_two_points(const double *moments, Py_ssize_t sets, Py_ssize_t each, const double *centres, double *L,
                              double *n, int64_t *set);

/* Sum points by their place in the order of probabilities, of which there are two for each cell: `used` are the places
   that occur, and `sums` (places, POINT_SUMS) theirs; return how many they are. */
Py_ssize_t safecal_sum_points(const PointRows *points, int64_t *used, double *sums);

/* R(beta) = log(1 + exp(-beta L)) and the cumulants of the surprise at one inverse temperature, summed over points. */
void safecal_add_tempered(double beta, const double *L, const double *n, Py_ssize_t count, double *total);

/* The sum of R at a beta minus that at another. */
double safecal_change(double beta, double other, const double *L, const double *n, Py_ssize_t count);

typedef struct {
    const void *values; /* (n, classes) logits or probabilities; floats where `single` */
    const int64_t *y;   /* the class that happened */
    double *columns;    /* (SCORES, n) */
    double *nodes;      /* (NODES, 4, n); or NULL */
    int64_t *top;       /* the most likely class */
    Py_ssize_t n, classes;
    int single;
} ClassRows;

/* Score all rows; `work` holds two tiles. */
void safecal_score_logits(const ClassRows *rows, double *work);
void safecal_score_shares(const ClassRows *rows, double *work);

typedef struct {
    const void *values; /* (n, classes) logits, of which those of impossible classes are -inf; floats where `single` */
    double *columns;    /* (GAP_COLUMNS, n): mean, variance and third cumulant of the gap, and the largest logit */
    Py_ssize_t n, classes;
    double beta; /* at least LEAST_BETA */
    int single;
} GapRows;

/* Fill the columns. */
void safecal_gap_moments(const GapRows *rows);

/* Sum a column by key; return 0 where there is no such key. */
int safecal_sum_by_key(const double *column, const int64_t *index, Py_ssize_t n, Py_ssize_t keys, double *sums);

/* Tell whether all (d, d) matrices are finite, symmetric up to a share of their standard deviations, and positive definite
   with at least a share of each variance left; d is at most MOST_DIMENSIONS. */
int safecal_sound(const double *matrices, Py_ssize_t n, Py_ssize_t d, double asymmetry, double share);

/* NEES and log-determinants of (n, d) residuals with (n, d, d) covariances; return 0 where one is not definite. */
int safecal_score_states(const double *residual, const double *matrices, Py_ssize_t n, Py_ssize_t d, double *nees,
                         double *logdet);

#endif
