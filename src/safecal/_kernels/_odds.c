/* Two-outcome predictions as marked rows (see `_compiled.h`), their log-odds and their keys. */

#include "_compiled.h"
#include "_elementary.h"

#define TINY 1e-300 /* below it, the exponent of m could be that of no normal float */
#define LARGE 1e300 /* the largest log-odds that are finite for us */

/* log((1 - m) / m) = k log 2 + 2 artanh(s), for TINY <= m <= 1/2; finite for m = 0. In two steps, each of them short
   enough for a processor to have several at work. */
INLINE uint64_t ratio_of(double m)
{
    return to_bits(1.0 - m) - to_bits(m) + (1ULL << 51); /* its exponent k: (1 - m) / (2**k m) is within 2/3 and 3/2 */
}

INLINE double small_part(double m)
{
    double near = from_bits(to_bits(m) + (ratio_of(m) & 0xfff0000000000000ULL));
    return (1.0 - 2.0 * m - (near - m)) / (1.0 - m + near);
}

INLINE double log_odds(double m, double s)
{
    const double ln2 = 6.93147180559945286227e-01;
    const double c1 = 0.3333333333333347, c2 = 0.19999999999662668, c3 = 0.14285714419723206, c4 = 0.11111091184738706;
    const double c5 = 0.09092316002711916, c6 = 0.07641586660148864, c7 = 0.07561647604307051;
    double k = from_bits((ratio_of(m) >> 52) | 0x4330000000000000ULL) - 4503599627370496.0;
    double z = s * s, w = z * z, twice = s + s;
    double tail = z * (c1 + w * (c3 + w * (c5 + w * c7))) + w * (c2 + w * (c4 + w * c6));
    return k * ln2 + (twice + twice * tail);
}

FAST void safecal_log_odds(const double *restrict marked, Py_ssize_t n, double *restrict L)
{
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane)
            L[i + lane] = small_part(unmarked(marked[i + lane]));
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            double m = unmarked(marked[i + lane]), logs = log_odds(m, L[i + lane]);
            L[i + lane] = m > 0.0 ? logs : 0.0;
        }
}

enum { NO_BINS, BY_PROBABILITY, BY_CONFIDENCE };

typedef struct {
    double first, scale, last, near;
} Bins;

/* What is seen of a chunk: a row that is not for the formulas, a row next to an edge of the bins. */
typedef struct {
    uint64_t bad, near;
} Seen;

/* Fill m, marked where the positive outcome is the likelier, L of log-odds, and the bins: [a, b), the last one closed.
   Next to an edge the quotient can miss by one. */
INLINE Seen fill(const void *values, int single, int logits, int by, Bins bins, Py_ssize_t n, double *restrict m,
                 double *restrict L, int32_t *restrict key)
{
    const double whole = 4503599627370496.0; /* 2**52: a sum with it has no digits behind the point */
    uint64_t bad = 0, near = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        double given = value_at(values, single, i), size = magnitude(given), least, value, off;
        uint64_t positive = to_bits((logits ? 0.0 : 0.5) - given) >> 63;
        if (logits) {
            double t = exp_of(size < -LEAST ? -size : LEAST);
            least = t / (1.0 + t);
            L[i] = size;
            bad |= size <= LARGE ? 0 : 1;
        } else {
            double other = 1.0 - given;
            least = given < other ? given : other;
            bad |= least >= TINY ? 0 : 1;
        }
        m[i] = from_bits((to_bits(least) & MAGNITUDE) | (positive << 62)); /* -0.0 is no mark */
        if (by == NO_BINS)
            continue;
        value = by == BY_CONFIDENCE ? 1.0 - least : !logits ? given : positive ? 1.0 - least : least;
        value = (value - bins.first) * bins.scale;
        off = magnitude(value - ((value + whole) - whole));
        near |= off < bins.near ? 1 : 0;
        value = value < bins.last ? value : bins.last;
        key[i] = (int32_t)(value > 0.0 ? value : 0.0);
    }
    return (Seen){bad, near};
}

/* Mark m where the less likely outcome happened. */
INLINE double marked_by(double m, int happened)
{
    uint64_t bits = to_bits(m);
    return from_bits(bits | (((bits << 1) & SIGN) ^ ((uint64_t)happened << 63)));
}

INLINE void mark(double *restrict m, const uint8_t *restrict happened, Py_ssize_t step, Py_ssize_t n)
{
    if (step == 1)
        for (Py_ssize_t i = 0; i < n; i++)
            m[i] = marked_by(m[i], happened[i] != 0);
    else if (n) { /* whole words are read at once; behind the last outcome there may be none */
        const uint64_t lowest = lowest_byte();
        for (Py_ssize_t i = 0; i < n - 1; i++) {
            uint64_t word;
            memcpy(&word, happened + i * WORD, sizeof word);
            m[i] = marked_by(m[i], (word & lowest) != 0);
        }
        m[n - 1] = marked_by(m[n - 1], happened[(n - 1) * WORD] != 0);
    }
}

/* Count the certain rows, and the impossible ones by key: m is 0, and what happened had no probability. Return 0 where
   m is too small for the formulas or no probability, or where an impossible row has a weight. */
static int set_apart(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        double p = value_at(rows->values, rows->single, at + i), other = 1.0 - p, m = p < other ? p : other;
        if (m >= TINY)
            continue;
        if (rows->logits || m != 0.0)
            return 0;
        work->certain++;
        if (to_bits(work->m[i]) & SIGN) {
            if (rows->weight)
                return 0;
            work->impossible[rows->keys == 1 ? 0 : work->key[i]]++;
        }
    }
    return !rows->logits;
}

/* Next to an edge the edges decide. */
static void mend_bins(const BinaryRows *rows, BinaryWork *work, Py_ssize_t n)
{
    const double *edges = rows->edges;
    for (Py_ssize_t i = 0; i < n; i++) {
        double m = unmarked(work->m[i]);
        double value = rows->confidence || to_bits(work->m[i]) & POSITIVE ? 1.0 - m : m;
        int32_t k = work->key[i];
        k -= (value < edges[k]) & (k > 0);
        k += (value >= edges[k + 1]) & (k < rows->keys - 1);
        work->key[i] = k;
    }
}

/* Number the keys of a chunk; return 0 where there is no such key. */
static int to_keys(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t k = rows->index[at + i];
        if (k < 0 || k >= rows->keys)
            return 0;
        work->key[i] = (int32_t)k;
    }
    return 1;
}

INLINE int prepare(const BinaryRows *rows, int single, int logits, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)
{
    const void *values = (const char *)rows->values + at * (Py_ssize_t)(single ? sizeof(float) : sizeof(double));
    double *m = work->m, *L = work->L;
    int32_t *key = work->key;
    Bins bins = {0.0, 0.0, rows->keys - 1, 1e-9 * rows->keys};
    Seen seen;
    if (rows->edges)
        bins.first = rows->edges[0], bins.scale = rows->keys / (rows->edges[rows->keys] - rows->edges[0]);
    if (!rows->edges)
        seen = fill(values, single, logits, NO_BINS, bins, n, m, L, key);
    else if (rows->confidence)
        seen = fill(values, single, logits, BY_CONFIDENCE, bins, n, m, L, key);
    else
        seen = fill(values, single, logits, BY_PROBABILITY, bins, n, m, L, key);
    mark(m, rows->happened + at * rows->step, rows->step, n);
    if (seen.near)
        mend_bins(rows, work, n);
    if (rows->index && !to_keys(rows, work, at, n))
        return 0;
    return !seen.bad || set_apart(rows, work, at, n);
}

#define PREPARE(name, single, logits)                                                                                  \
    FAST static int name(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)                        \
    {                                                                                                                  \
        return prepare(rows, single, logits, work, at, n);                                                             \
    }

PREPARE(float_logits, 1, 1)
PREPARE(double_logits, 0, 1)
PREPARE(float_probabilities, 1, 0)
PREPARE(double_probabilities, 0, 0)

int safecal_to_odds(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n)
{
    if (rows->logits)
        return rows->single ? float_logits(rows, work, at, n) : double_logits(rows, work, at, n);
    return rows->single ? float_probabilities(rows, work, at, n) : double_probabilities(rows, work, at, n);
}
