/* Two-outcome predictions: all sums by bin in one pass.

   The rows of a chunk are put in the order of their bins, each as one number: the probability, with its sign bit set
   where the outcome happened. Then every bin is a contiguous run, summed in eight lanes. The number of lanes is fixed and
   no operation is contracted, so every processor gives the same result. The formulas are those of `bernoulli.py`. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 4096
#define LANES 8
#define SUMS 9
#define MOST_KEYS 256
#define PER_OCTAVE_BITS 49 /* a float shifted by this many bits keeps its exponent and three digits: `histogram.py` */

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && !defined(SAFECAL_PLAIN)
#define FAST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FAST
#endif

static const uint64_t MAGNITUDE = 0x7fffffffffffffffULL;
static const double TINY = 1e-300; /* below it, |2p - 1| / m could overflow */

static inline double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* log(u) + correction, for a normal u > 0: the polynomial of fdlibm, without branches. */
static inline double log_near(double u, double correction)
{
    const double ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    const double l1 = 6.666666666666735130e-01, l2 = 3.999999999940941908e-01, l3 = 2.857142874366239149e-01;
    const double l4 = 2.222219843214978396e-01, l5 = 1.818357216161805012e-01, l6 = 1.531383769920937332e-01;
    const double l7 = 1.479819860511658591e-01;
    uint64_t bits = to_bits(u);
    uint64_t exponent = (bits - 0x3fe6a09e667f3bcdULL + (1ULL << 62)) >> 52; /* that of u / sqrt(1/2), plus 1024 */
    double f = from_bits(bits - ((exponent - 1024) << 52)) - 1.0;
    double k = from_bits(exponent | 0x4330000000000000ULL) - 4503599627371520.0; /* 2**52 + 1024 */
    double h = 0.5 * f * f, s = f / (2.0 + f), z = s * s, w = z * z;
    double r = w * (l2 + w * (l4 + w * l6)) + z * (l1 + w * (l3 + w * (l5 + w * l7)));
    return s * (h + r) + (k * ln2_lo + correction) - h + f + k * ln2_hi;
}

/* Add one row to its lane: excess and its powers, varentropy, third cumulant, entropy, confidence, Brier, probability. */
static inline void add_row(double row, double *restrict lanes, int lane, double *restrict excess)
{
    double p = from_bits(to_bits(row) & MAGNITUDE), q = 1.0 - p;
    double m = p < q ? p : q, M = p < q ? q : p;
    double contrast = from_bits(to_bits(p + (p - 1.0)) & MAGNITUDE);
    double x = contrast / m, u = 1.0 + x, near = 2.0 - u, v = 1.0 - m;
    double L = log_near(u, (x - (u - 1.0)) * (near > 0.0 ? near : 0.0)); /* log1p(x): from u = 2 on, nothing is lost */
    double log_M = log_near(v, ((1.0 - v) - m) * (2.0 - v));
    double residual = ((p > 0.5) == (row < 0.0)) ? -m : M;
    double mL = m * L, varentropy = mL * L * M, e = residual * L, e2 = e * e;
    lanes[0 * LANES + lane] += e;
    lanes[1 * LANES + lane] += e2;
    lanes[2 * LANES + lane] += e2 * e;
    lanes[3 * LANES + lane] += varentropy;
    lanes[4 * LANES + lane] += varentropy * L * contrast;
    lanes[5 * LANES + lane] += mL - log_M;
    lanes[6 * LANES + lane] += M;
    lanes[7 * LANES + lane] += residual * residual;
    lanes[8 * LANES + lane] += p;
    *excess = e;
}

FAST static void add_run(const double *restrict rows, Py_ssize_t n, double *restrict total, double *restrict excess)
{
    double lanes[SUMS * LANES];
    Py_ssize_t i = 0;
    memset(lanes, 0, sizeof lanes);
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            add_row(rows[i + lane], lanes, lane, excess + i + lane);
    for (int lane = 0; i + lane < n; lane++)
        add_row(rows[i + lane], lanes, lane, excess + i + lane);
    for (int j = 0; j < SUMS; j++) {
        const double *a = lanes + j * LANES;
        total[j] += ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
    }
}

/* Tell whether the formulas above hold for all rows: neither p nor 1 - p is below TINY, nor NaN. */
FAST static int all_usable(const double *restrict p, Py_ssize_t n)
{
    double bad[LANES] = {0};
    Py_ssize_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            double a = p[i + lane], b = 1.0 - a, m = a < b ? a : b;
            bad[lane] += m >= TINY ? 0.0 : 1.0;
        }
    for (; i < n; i++) {
        double a = p[i], b = 1.0 - a, m = a < b ? a : b;
        bad[0] += m >= TINY ? 0.0 : 1.0;
    }
    for (int lane = 1; lane < LANES; lane++)
        bad[0] += bad[lane];
    return bad[0] == 0.0;
}

/* Number the bin of each probability: [a, b), the last one closed. The quotient can miss by one; the edges decide. */
FAST static void to_bins(const double *restrict p, Py_ssize_t n, const double *restrict edges, int32_t bins,
                         int32_t *restrict key)
{
    double first = edges[0], scale = bins / (edges[bins] - edges[0]);
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t k = (int32_t)((p[i] - first) * scale);
        k = k > bins - 1 ? bins - 1 : k;
        k -= p[i] < edges[k];
        k += (p[i] >= edges[k + 1]) & (k < bins - 1);
        key[i] = k;
    }
}

FAST static void to_cells(const double *restrict excess, Py_ssize_t n, int32_t zero, int32_t side, int32_t *restrict cell)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t bits = to_bits(excess[i]);
        int32_t step = (int32_t)((bits & MAGNITUDE) >> PER_OCTAVE_BITS) - zero;
        step = step < 0 ? 0 : step > side ? side : step;
        cell[i] = side + ((bits >> 63) ? -step : step);
    }
}

typedef struct {
    double rows[CHUNK], excess[CHUNK];
    int32_t key[CHUNK], cell[CHUNK];
} Work;

static void add_chunk(Work *work, const double *p, const uint8_t *happened, Py_ssize_t n, int32_t keys, double *sums,
                      double *cells, int32_t zero, int32_t side)
{
    int32_t count[MOST_KEYS] = {0}, positive[MOST_KEYS] = {0}, right[MOST_KEYS] = {0}, start[MOST_KEYS];
    for (Py_ssize_t i = 0; i < n; i++) {
        int32_t k = work->key[i];
        count[k] += 1;
        positive[k] += happened[i];
        right[k] += (p[i] > 0.5) == happened[i];
    }
    for (int32_t k = 0, at = 0; k < keys; at += count[k++])
        start[k] = at;
    for (Py_ssize_t i = 0; i < n; i++)
        work->rows[start[work->key[i]]++] = from_bits(to_bits(p[i]) | (uint64_t)happened[i] << 63);
    for (int32_t k = 0; k < keys; k++) {
        Py_ssize_t from = start[k] - count[k];
        double *total = sums + (SUMS + 3) * (Py_ssize_t)k;
        if (!count[k])
            continue;
        add_run(work->rows + from, count[k], total, work->excess + from);
        total[SUMS] += count[k];
        total[SUMS + 1] += positive[k];
        total[SUMS + 2] += right[k];
    }
    if (cells) {
        to_cells(work->excess, n, zero, side, work->cell);
        for (Py_ssize_t i = 0; i < n; i++) {
            cells[2 * work->cell[i]] += 1.0;
            cells[2 * work->cell[i] + 1] += work->excess[i];
        }
    }
}

/* Add all rows; return 0 where one of them is not for these formulas. */
static int add_all(Work *work, const double *p, const uint8_t *happened, Py_ssize_t n, const double *edges,
                   const int64_t *index, int32_t keys, double *sums, double *cells, int32_t zero, int32_t side)
{
    for (Py_ssize_t at = 0; at < n; at += CHUNK) {
        Py_ssize_t size = n - at < CHUNK ? n - at : CHUNK;
        if (!all_usable(p + at, size))
            return 0;
        if (edges)
            to_bins(p + at, size, edges, keys, work->key);
        else if (index)
            for (Py_ssize_t i = 0; i < size; i++) {
                if (index[at + i] < 0 || index[at + i] >= keys)
                    return 0;
                work->key[i] = (int32_t)index[at + i];
            }
        else
            memset(work->key, 0, sizeof work->key);
        add_chunk(work, p + at, happened + at, size, keys, sums, cells, zero, side);
    }
    return 1;
}

/* A contiguous buffer of so many items of one size, or NULL with an exception; None gives an empty one. */
static int take(PyObject *object, Py_buffer *view, int flags, Py_ssize_t item, Py_ssize_t items, const char *name)
{
    view->obj = NULL;
    view->buf = NULL;
    if (object == Py_None)
        return 0;
    if (PyObject_GetBuffer(object, view, PyBUF_C_CONTIGUOUS | flags))
        return -1;
    if (view->itemsize != item || view->len != item * items) {
        PyErr_Format(PyExc_ValueError, "%s must hold %zd items of %zd bytes", name, items, item);
        return -1;
    }
    return 0;
}

static PyObject *bernoulli_sums(PyObject *self, PyObject *args)
{
    PyObject *objects[6], *result = NULL;
    Py_buffer p, happened, edges, index, sums, cells;
    Py_buffer *views[6] = {&p, &happened, &edges, &index, &sums, &cells};
    Py_ssize_t n, keys;
    int zero, side, done = 0;
    Work *work = NULL;
    (void)self;
    for (int k = 0; k < 6; k++)
        views[k]->obj = NULL;
    if (!PyArg_ParseTuple(args, "nnOOOOOOii", &n, &keys, objects, objects + 1, objects + 2, objects + 3, objects + 4,
                          objects + 5, &zero, &side))
        return NULL;
    if (keys < 1 || keys > MOST_KEYS) {
        PyErr_Format(PyExc_ValueError, "keys must lie between 1 and %d", MOST_KEYS);
        return NULL;
    }
    if (take(objects[0], &p, 0, 8, n, "p") || take(objects[1], &happened, 0, 1, n, "happened") ||
        take(objects[2], &edges, 0, 8, keys + 1, "edges") || take(objects[3], &index, 0, 8, n, "index") ||
        take(objects[4], &sums, PyBUF_WRITABLE, 8, keys * (SUMS + 3), "sums") ||
        take(objects[5], &cells, PyBUF_WRITABLE, 8, 2 * (2 * (Py_ssize_t)side + 1), "cells"))
        goto end;
    work = malloc(sizeof *work);
    if (!work) {
        PyErr_NoMemory();
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    done = add_all(work, p.buf, happened.buf, n, edges.buf, index.buf, (int32_t)keys, sums.buf, cells.buf, zero, side);
    Py_END_ALLOW_THREADS
    result = PyBool_FromLong(done);
end:
    free(work);
    for (int k = 0; k < 6; k++)
        if (views[k]->obj)
            PyBuffer_Release(views[k]);
    return result;
}

static PyMethodDef methods[] = {
    {"bernoulli_sums", bernoulli_sums, METH_VARARGS,
     "bernoulli_sums(n, keys, p, happened, edges, index, sums, cells, zero, side) -> bool\n\n"
     "Add the sums of n rows to `sums` (keys, 12) and `cells` (2 side + 1, 2). False where a probability is too near to\n"
     "0 or 1 for these formulas; then both hold nothing of use."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void)
{
    return PyModuleDef_Init(&module);
}
