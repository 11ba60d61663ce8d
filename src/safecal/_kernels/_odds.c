/* Two-outcome predictions as pairs of numbers: the smaller probability m, with its sign bit set where the less likely
   outcome happened, and the log-odds L of the larger one, with its sign bit set where that is the positive outcome. */

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

/* Count the certain and the impossible rows: m is 0, and where the other outcome did not happen, what happened had no
   probability. Return 0 where m is too small for the formulas. */
INLINE int usable(const void *p, int single, const uint8_t *restrict happened, Py_ssize_t n, int64_t *certain,
                  int64_t *impossible)
{
    double bad[LANES] = {0.0}, any = 0.0;
    Py_ssize_t i = 0;
    for (; i + LANES <= n; i += LANES)
        EACH_LANE(lane) {
            double a = value_at(p, single, i + lane), b = 1.0 - a, m = a < b ? a : b;
            bad[lane] += m >= TINY ? 0.0 : 1.0;
        }
    for (int lane = 0; lane < LANES; lane++)
        any += bad[lane];
    for (i = any > 0.0 ? 0 : i; i < n; i++) {
        double a = value_at(p, single, i), b = 1.0 - a, m = a < b ? a : b;
        if (!(m >= TINY) && m != 0.0)
            return 0;
        *certain += m == 0.0;
        *impossible += m == 0.0 && a != (double)happened[i];
    }
    return 1;
}

INLINE void from_probabilities(const void *p, int single, Py_ssize_t n, double *restrict m, double *restrict L)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        double a = value_at(p, single, i), b = 1.0 - a, least = a < b ? a : b;
        m[i] = least;
        L[i] = small_part(least);
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        double a = value_at(p, single, i);
        L[i] = from_bits(to_bits(log_odds(m[i], L[i])) | (to_bits(0.5 - a) & SIGN));
    }
}

/* Tell whether every log-odds is finite. */
INLINE int all_finite(const void *logits, int single, Py_ssize_t n)
{
    double bad[LANES] = {0.0}, any = 0.0;
    Py_ssize_t i = 0;
    for (; i + LANES <= n; i += LANES)
        EACH_LANE(lane)
            bad[lane] += magnitude(value_at(logits, single, i + lane)) <= LARGE ? 0.0 : 1.0;
    for (; i < n; i++)
        any += magnitude(value_at(logits, single, i)) <= LARGE ? 0.0 : 1.0;
    for (int lane = 0; lane < LANES; lane++)
        any += bad[lane];
    return any == 0.0;
}

INLINE void from_logits(const void *logits, int single, Py_ssize_t n, double *restrict m, double *restrict L)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        double logit = value_at(logits, single, i), size = magnitude(logit);
        double t = exp_of(size < -LEAST ? -size : LEAST);
        m[i] = t / (1.0 + t);
        L[i] = from_bits(to_bits(size) | (to_bits(0.0 - logit) & SIGN));
    }
}

/* Set the sign bit of m where the less likely outcome happened. */
INLINE void mark(double *restrict m, const double *restrict L, const uint8_t *restrict happened, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++)
        m[i] = from_bits(to_bits(m[i]) | ((to_bits(L[i]) & SIGN) ^ ((uint64_t)happened[i] << 63)));
}

/* Count the impossible rows of each key, and let nothing of theirs but the row be summed. */
static void set_apart(BinaryWork *work, Py_ssize_t n, int one_key)
{
    for (Py_ssize_t i = 0; i < n; i++)
        if (to_bits(work->m[i]) == SIGN) {
            work->L[i] = from_bits(to_bits(work->L[i]) & SIGN);
            work->impossible[one_key ? 0 : work->key[i]]++;
        }
}

/* Number the bin of each row: [a, b), the last one closed. Next to an edge the quotient can miss by one; there the
   edges decide. */
INLINE void to_bins(const double *restrict m, const double *restrict L, Py_ssize_t n, int confidence,
                    const double *restrict edges, int32_t bins, double *restrict value, int32_t *restrict key)
{
    const double whole = 4503599627370496.0; /* 2**52: a sum with it has no digits behind the point */
    double first = edges[0], scale = bins / (edges[bins] - edges[0]), last = bins - 1, nearest[LANES];
    uint64_t up = confidence ? SIGN : 0;
    int near = 0;
    EACH_LANE(lane)
        nearest[lane] = 1.0;
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            double v = magnitude(flag(to_bits(L[i + lane]) | up) - m[i + lane]), scaled = (v - first) * scale;
            double off = magnitude(scaled - ((scaled + whole) - whole));
            value[i + lane] = v;
            nearest[lane] = off < nearest[lane] ? off : nearest[lane];
            scaled = scaled < last ? scaled : last;
            key[i + lane] = (int32_t)(scaled > 0.0 ? scaled : 0.0);
        }
    for (int lane = 0; lane < LANES; lane++)
        near |= nearest[lane] < 1e-9 * bins;
    if (!near)
        return;
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t k = key[i];
        k -= (value[i] < edges[k]) & (k > 0);
        k += (value[i] >= edges[k + 1]) & (k < bins - 1);
        key[i] = k;
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

/* Fill m and L of a chunk, and the keys; return 0 where it is none of ours. */
INLINE int prepare(const BinaryRows *rows, int single, BinaryWork *work, Py_ssize_t at, Py_ssize_t n, int64_t *certain)
{
    const void *values = (const char *)rows->values + at * (Py_ssize_t)(single ? sizeof(float) : sizeof(double));
    double *m = work->m, *L = work->L;
    int64_t impossible = 0;
    if (rows->logits) {
        if (!all_finite(values, single, n))
            return 0;
        from_logits(values, single, n, m, L);
    } else {
        if (!usable(values, single, rows->happened + at, n, certain, &impossible) || (impossible && rows->weight))
            return 0;
        from_probabilities(values, single, n, m, L);
    }
    for (Py_ssize_t i = n; i % LANES; i++)
        m[i] = L[i] = 0.0;
    if (rows->edges)
        to_bins(m, L, n, rows->confidence, rows->edges, rows->keys, work->excess, work->key);
    else if (rows->index && !to_keys(rows, work, at, n))
        return 0;
    mark(m, L, rows->happened + at, n);
    if (impossible)
        set_apart(work, n, rows->keys == 1);
    if (rows->weight)
        memcpy(work->weight, rows->weight + at, (size_t)n * sizeof work->weight[0]);
    return 1;
}

FAST static int prepare_singles(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n, int64_t *certain)
{
    return prepare(rows, 1, work, at, n, certain);
}

FAST static int prepare_doubles(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n, int64_t *certain)
{
    return prepare(rows, 0, work, at, n, certain);
}

int safecal_to_odds(const BinaryRows *rows, BinaryWork *work, Py_ssize_t at, Py_ssize_t n, int64_t *certain)
{
    return rows->single ? prepare_singles(rows, work, at, n, certain) : prepare_doubles(rows, work, at, n, certain);
}
