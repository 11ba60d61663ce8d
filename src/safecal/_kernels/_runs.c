/* Runs of two-outcome rows of one key, summed in eight lanes. The formulas are those of `bernoulli.py`, but for the sum
   of -log(1 - m): it is taken of products. */

#include "_compiled.h"
#include "_elementary.h"

#define FLAT 0.015625 /* log-odds below which 1 - 2m loses digits, unless m was given */

typedef struct {
    double m, M, residual, excess, varentropy, third, predicted;
    uint64_t wrong, observed;
} Row;

INLINE Row row_of(double marked, double L, int logits)
{
    uint64_t bits = to_bits(marked), next = bits << 1;
    double m = unmarked(marked), M = 1.0 - m, half = 0.5 * L, z = half * half, contrast = 1.0 - (m + m);
    double flat = half * (1.0 - z * (1.0 / 3.0 - z * (2.0 / 15.0)));
    double residual = (int64_t)bits < 0 ? M : 0.0 - m, varentropy = m * L * L * M;
    Row row = {m, M, residual, residual * L, varentropy, 0.0, 0.0, bits >> 63, (bits ^ next) >> 63};
    row.third = varentropy * L * (logits && L < FLAT ? flat : contrast);
    row.predicted = (int64_t)next < 0 ? M : m;
    return row;
}

/* Add a run of at most RUN rows to the sums of its key: m for the confidence, wrong rows for the correct ones, so that
   the zeros that fill its last lanes change nothing. */
INLINE void add_rows(const double *restrict m, const double *restrict L, Py_ssize_t n, int logits,
                     double *restrict total, uint64_t *restrict seen)
{
    double lanes[SUMS][LANES], some[LANES], none[LANES];
    uint64_t wrong[LANES], observed[LANES];
    for (int j = 0; j < SUMS; j++)
        EACH_LANE(lane)
            lanes[j][lane] = 0.0;
    EACH_LANE(lane)
        some[lane] = 0.0, none[lane] = 1.0, wrong[lane] = observed[lane] = 0;
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            Row row = row_of(m[i + lane], L[i + lane], logits);
            double e = row.excess, e2 = e * e;
            lanes[0][lane] += e;
            lanes[1][lane] += e2;
            lanes[2][lane] += e2 * e;
            lanes[3][lane] += row.varentropy;
            lanes[4][lane] += row.third;
            lanes[5][lane] += row.m * L[i + lane];
            lanes[6][lane] += row.m;
            lanes[7][lane] += row.residual * row.residual;
            lanes[8][lane] += row.predicted;
            wrong[lane] += row.wrong;
            observed[lane] += row.observed;
            some[lane] += row.m * (1.0 - some[lane]);
            none[lane] *= row.M;
        }
    EACH_LANE(lane)
        lanes[5][lane] += minus_log_of(some[lane], none[lane]);
    for (int j = 0; j < SUMS; j++)
        EACH_LANE(lane)
            total[j * LANES + lane] += lanes[j][lane];
    EACH_LANE(lane)
        seen[lane] += wrong[lane], seen[LANES + lane] += observed[lane];
}

FAST static void add_probabilities(const double *m, const double *L, Py_ssize_t n, double *total, uint64_t *seen)
{
    add_rows(m, L, n, 0, total, seen);
}

FAST static void add_logits(const double *m, const double *L, Py_ssize_t n, double *total, uint64_t *seen)
{
    add_rows(m, L, n, 1, total, seen);
}

/* The same with a weight for each row, which is 0 in the lanes that are filled. */
FAST static void add_weighted(const double *restrict m, const double *restrict L, const double *restrict weight,
                              Py_ssize_t n, double *restrict total)
{
    double lanes[WEIGHTED_SUMS][LANES];
    memset(lanes, 0, sizeof lanes);
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            Row row = row_of(m[i + lane], L[i + lane], 1);
            double w = weight[i + lane], w2 = w * w, e = row.excess, we = w * e, we2 = we * we;
            lanes[0][lane] += we;
            lanes[1][lane] += we2;
            lanes[2][lane] += we2 * we;
            lanes[3][lane] += w * row.varentropy;
            lanes[4][lane] += w2 * w * row.third;
            lanes[5][lane] += w * (row.m * L[i + lane] + minus_log_of(row.m, row.M));
            lanes[6][lane] += w * row.M;
            lanes[7][lane] += row.wrong ? 0.0 : w;
            lanes[8][lane] += w * (row.residual * row.residual);
            lanes[9][lane] += w * row.predicted;
            lanes[10][lane] += row.observed ? w : 0.0;
            lanes[11][lane] += w;
            lanes[12][lane] += w2;
            lanes[13][lane] += w2 * w;
            lanes[14][lane] += w * we;
            lanes[15][lane] += w2 * we;
            lanes[16][lane] += w * we2;
            lanes[17][lane] += w2 * row.varentropy;
        }
    for (int j = 0; j < WEIGHTED_SUMS; j++)
        EACH_LANE(lane)
            total[j * LANES + lane] += lanes[j][lane];
}

void safecal_add_run(const BinaryRows *rows, BinaryWork *work, double *m, double *L, double *weight, int32_t n,
                     int32_t key)
{
    double *total = work->total + (Py_ssize_t)key * WEIGHTED_SUMS * LANES;
    uint64_t *seen = work->seen + (Py_ssize_t)key * 2 * LANES;
    for (int32_t i = n; i % LANES; i++) {
        m[i] = 0.0;
        if (rows->logits)
            L[i] = 0.0;
        if (rows->weight)
            weight[i] = 0.0;
    }
    if (!rows->logits) {
        L = work->run_L;
        safecal_log_odds(m, n, L);
    }
    if (rows->weight)
        add_weighted(m, L, weight, n, total);
    else if (rows->logits)
        add_logits(m, L, n, total, seen);
    else
        add_probabilities(m, L, n, total, seen);
    work->count[key] += n;
    if (rows->spectrum)
        safecal_add_spectrum(rows, work, m, L, n);
    if (rows->nodes)
        safecal_add_nodes(m, L, n, work->nodes + (Py_ssize_t)key * AT_NODES * LANES);
}
