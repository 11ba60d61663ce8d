/* Two-outcome predictions: all sums by key in one pass.

   Rows come as the pairs of `_odds.c`, and wait with others of their key; a run of them is summed in eight lanes. The
   formulas are those of `bernoulli.py`, but for the sum of -log(1 - m): it is taken of products. */

#include "_compiled.h"
#include "_elementary.h"

#define PER_OCTAVE_BITS 49 /* a float shifted by this many bits keeps its exponent and three digits: `histogram.py` */
#define FLAT 0.015625      /* log-odds below which 1 - 2m loses digits */

/* -log(1 - m) of several rows at once: `some` is 1 - product of (1 - m), without cancellation, `none` the product. */
INLINE double minus_log_of(double some, double none)
{
    double rest = 1.0 - some, lost = ((1.0 - rest) - some) * (2.0 - rest);
    return 0.0 - log_near(some < 0.5 ? rest : none, some < 0.5 ? lost : 0.0);
}

typedef struct {
    double m, M, L, residual, excess, varentropy, third, predicted, observed, wrong;
} Row;

INLINE Row row_of(double marked_m, double marked_L)
{
    uint64_t a = to_bits(marked_m), b = to_bits(marked_L);
    double m = from_bits(a & MAGNITUDE), M = 1.0 - m, L = from_bits(b & MAGNITUDE), half = 0.5 * L, z = half * half;
    double flat = half * (1.0 - z * (1.0 / 3.0 - z * (2.0 / 15.0))), contrast = L < FLAT ? flat : M - m;
    double wrong = flag(a), residual = wrong - m, varentropy = m * L * L * M;
    Row row = {m, M, L, residual, residual * L, varentropy, varentropy * L * contrast, 0.0, 0.0, wrong};
    row.predicted = magnitude(flag(b) - m);
    row.observed = flag(a ^ b);
    return row;
}

/* Add a run of at most RUN rows to the sums of its key: m for the confidence, wrong rows for the correct ones, so that
   the zeros that fill its last lanes change nothing. */
FAST static void add_run(const double *restrict m, const double *restrict L, Py_ssize_t n,
                         double (*restrict total)[LANES], double *restrict excess)
{
    double lanes[SUMS][LANES], some[LANES], none[LANES];
    memset(lanes, 0, sizeof lanes);
    EACH_LANE(lane)
        some[lane] = 0.0, none[lane] = 1.0;
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            Row row = row_of(m[i + lane], L[i + lane]);
            double e = row.excess, e2 = e * e;
            lanes[0][lane] += e;
            lanes[1][lane] += e2;
            lanes[2][lane] += e2 * e;
            lanes[3][lane] += row.varentropy;
            lanes[4][lane] += row.third;
            lanes[5][lane] += row.m * row.L;
            lanes[6][lane] += row.m;
            lanes[7][lane] += row.wrong;
            lanes[8][lane] += row.residual * row.residual;
            lanes[9][lane] += row.predicted;
            lanes[10][lane] += row.observed;
            some[lane] += row.m * (1.0 - some[lane]);
            none[lane] *= row.M;
            excess[i + lane] = e;
        }
    EACH_LANE(lane)
        lanes[5][lane] += minus_log_of(some[lane], none[lane]);
    for (int j = 0; j < SUMS; j++)
        EACH_LANE(lane)
            total[j][lane] += lanes[j][lane];
}

/* The same with a weight for each row, which is 0 in the lanes that are filled. */
FAST static void add_weighted(const double *restrict m, const double *restrict L, const double *restrict weight,
                              Py_ssize_t n, double (*restrict total)[LANES], double *restrict excess)
{
    double lanes[WEIGHTED_SUMS][LANES];
    memset(lanes, 0, sizeof lanes);
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            Row row = row_of(m[i + lane], L[i + lane]);
            double w = weight[i + lane], w2 = w * w, e = row.excess, we = w * e, we2 = we * we;
            lanes[0][lane] += we;
            lanes[1][lane] += we2;
            lanes[2][lane] += we2 * we;
            lanes[3][lane] += w * row.varentropy;
            lanes[4][lane] += w2 * w * row.third;
            lanes[5][lane] += w * (row.m * row.L + minus_log_of(row.m, row.M));
            lanes[6][lane] += w * row.M;
            lanes[7][lane] += w * (1.0 - row.wrong);
            lanes[8][lane] += w * (row.residual * row.residual);
            lanes[9][lane] += w * row.predicted;
            lanes[10][lane] += w * row.observed;
            lanes[11][lane] += w;
            lanes[12][lane] += w2;
            lanes[13][lane] += w2 * w;
            lanes[14][lane] += w * we;
            lanes[15][lane] += w2 * we;
            lanes[16][lane] += w * we2;
            lanes[17][lane] += w2 * row.varentropy;
            excess[i + lane] = e;
        }
    for (int j = 0; j < WEIGHTED_SUMS; j++)
        EACH_LANE(lane)
            total[j][lane] += lanes[j][lane];
}

/* Number the cells of a histogram. */
FAST static void to_cells(const double *restrict excess, int32_t n, int32_t zero, int32_t side, int32_t *restrict cell)
{
    for (int32_t i = 0; i < n; i++) {
        uint64_t bits = to_bits(excess[i]);
        int32_t step = (int32_t)((bits & MAGNITUDE) >> PER_OCTAVE_BITS) - zero, back = (int32_t)(bits >> 63);
        step = step < 0 ? 0 : step > side ? side : step;
        cell[i] = side + (step ^ -back) + back;
    }
}

/* Count rows and their excess in the cells. */
static void add_cells(const BinaryRows *rows, BinaryWork *work, const double *restrict weight, int32_t n)
{
    to_cells(work->excess, n, rows->zero, rows->side, work->cell);
    for (int32_t i = 0; i < n; i++) {
        double w = weight ? weight[i] : 1.0, *cell = rows->cells + 2 * work->cell[i];
        cell[0] += w;
        cell[1] += w * work->excess[i];
    }
}

/* Add a run of rows of one key to its sums and to the histogram. */
static void add(const BinaryRows *rows, BinaryWork *work, double *m, double *L, double *weight, int32_t n, int32_t key)
{
    for (int32_t i = n; i % LANES; i++) {
        m[i] = L[i] = 0.0;
        if (rows->weight)
            weight[i] = 0.0;
    }
    if (rows->weight)
        add_weighted(m, L, weight, n, work->total[key], work->excess);
    else
        add_run(m, L, n, work->total[key], work->excess);
    work->count[key] += n;
    if (rows->cells)
        add_cells(rows, work, rows->weight ? weight : NULL, n);
}

static inline void queue_up(const BinaryRows *rows, BinaryWork *work, int half, Py_ssize_t i)
{
    int32_t key = work->key[i];
    Queue *queue = &work->queues[half][key];
    int32_t at = queue->n;
    queue->m[at] = work->m[i];
    queue->L[at] = work->L[i];
    if (rows->weight)
        queue->weight[at] = work->weight[i];
    queue->n = at + 1;
    if (at == RUN - 1) {
        add(rows, work, queue->m, queue->L, queue->weight, RUN, key);
        queue->n = 0;
    }
}

/* Rows of one key are added at once; others wait. The halves of a chunk do not wait for each other. */
static void add_chunk(const BinaryRows *rows, BinaryWork *work, Py_ssize_t n)
{
    Py_ssize_t half = n / 2;
    if (rows->keys == 1) {
        for (Py_ssize_t at = 0; at < n; at += RUN)
            add(rows, work, work->m + at, work->L + at, work->weight + at, (int32_t)(n - at < RUN ? n - at : RUN), 0);
        return;
    }
    for (Py_ssize_t i = 0; i < half; i++) {
        queue_up(rows, work, 0, i);
        queue_up(rows, work, 1, half + i);
    }
    if (n % 2)
        queue_up(rows, work, 0, n - 1);
}

/* Add up the lanes. */
static void finish(const BinaryRows *rows, BinaryWork *work, int32_t key)
{
    int columns = rows->weight ? WEIGHTED_SUMS : SUMS;
    double *sums = rows->sums + (columns + 2) * (Py_ssize_t)key, count;
    for (int half = 0; half < 2; half++) {
        Queue *queue = &work->queues[half][key];
        if (queue->n)
            add(rows, work, queue->m, queue->L, queue->weight, queue->n, key);
    }
    count = (double)work->count[key];
    for (int j = 0; j < columns; j++) {
        double *a = work->total[key][j], all = ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
        sums[j] = !rows->weight && (j == 6 || j == 7) ? count - all : all;
    }
    sums[columns] = (double)work->impossible[key];
    sums[columns + 1] = count;
    if (rows->cells)
        rows->cells[2 * rows->side] -= sums[columns]; /* as rows without excess they were counted there */
}

int64_t safecal_add_binary(const BinaryRows *rows, BinaryWork *work)
{
    int64_t certain = 0;
    for (int32_t k = 0; k < rows->keys; k++) {
        memset(work->total[k], 0, sizeof work->total[k]);
        work->count[k] = work->impossible[k] = 0;
        work->queues[0][k].n = work->queues[1][k].n = 0;
    }
    for (Py_ssize_t at = 0; at < rows->n; at += CHUNK) {
        Py_ssize_t n = rows->n - at < CHUNK ? rows->n - at : CHUNK;
        if (!safecal_to_odds(rows, work, at, n, &certain))
            return -1;
        add_chunk(rows, work, n);
    }
    for (int32_t k = 0; k < rows->keys; k++)
        finish(rows, work, k);
    return certain;
}
