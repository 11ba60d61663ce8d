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
#define RUN 128 /* rows summed together: a lane has 16 of them, and 2**-16 is far from 0 */
#define SUMS 11
#define WEIGHTED_SUMS 18
#define MOST_KEYS 256
#define SCORES 7

typedef struct {
    const void *values;      /* probabilities, or log-odds where `logits`; floats where `single` */
    const uint8_t *happened; /* 1 where the positive outcome did */
    const double *weight;    /* of each row; or NULL */
    const double *edges;     /* of uniform bins, of the probability or of the `confidence`; or NULL */
    const int64_t *index;    /* the key of each row; or NULL */
    double *sums, *cells;    /* (keys, SUMS + 2 or WEIGHTED_SUMS + 2), and (2 side + 1, 2) or NULL */
    Py_ssize_t n;
    int32_t keys, zero, side;
    int single, logits, confidence;
} BinaryRows;

typedef struct {
    int32_t n;
    double m[RUN], L[RUN], weight[RUN];
} Queue; /* rows of one key that wait to be summed */

typedef struct {
    double m[CHUNK], L[CHUNK], weight[CHUNK], excess[CHUNK];
    int32_t key[CHUNK], cell[RUN];
    int64_t count[MOST_KEYS], impossible[MOST_KEYS];
    double total[MOST_KEYS][WEIGHTED_SUMS][LANES];
    Queue queues[2][MOST_KEYS];
} BinaryWork;

/* Fill m, L, weight and key of a chunk of n rows; return 0 where a row is not for the formulas. */
int safecal_to_odds(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n, int64_t *certain);

/* Add all rows; return the number of certain ones, or -1 where a row is not for the formulas. */
int64_t safecal_add_binary(const BinaryRows *rows, BinaryWork *work);

typedef struct {
    const void *values; /* (n, classes) logits or probabilities; floats where `single` */
    const int64_t *y;   /* the class that happened */
    double *columns;    /* (SCORES, n) */
    int64_t *top;       /* the most likely class */
    Py_ssize_t n, classes;
    int single;
} ClassRows;

/* Score all rows; `work` holds two tiles. */
void safecal_score_logits(const ClassRows *rows, double *work);
void safecal_score_shares(const ClassRows *rows, double *work);

/* Sum a column by key; return 0 where there is no such key. */
int safecal_sum_by_key(const double *column, const int64_t *index, Py_ssize_t n, Py_ssize_t keys, double *sums);

#endif
