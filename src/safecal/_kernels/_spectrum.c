/* The spectrum of two-outcome rows: moments by cell of their log-odds, as `spectrum.py` defines them. */

#include "_compiled.h"
#include "_elementary.h"

#define DIGITS 48             /* a float shifted by so many bits keeps its exponent and four digits */
#define HAIR (1ULL << 12)     /* so many last digits below a round number an edge lies */
#define FIRST 0x3f6fULL       /* what is left of a float of the first cell */
#define LEAST_EDGE 0.00390625 /* 2**-8 */
#define LAST_EDGE 1048576.0   /* 2**20 */
#define MOST_ADDED 32768      /* rows summed by themselves, for the sake of the last digits */

/* Number the cell of each row and its kind within the cell, and take its distance d from the centre of the cell. */
FAST static void to_kinds(const double *restrict marked, const double *restrict L, Py_ssize_t n,
                          uint64_t *restrict kind, double *restrict d)
{
    const uint64_t first_centre = to_bits(0.5 * LEAST_EDGE), last_centre = to_bits(LAST_EDGE);
    const double lowest = from_bits(FIRST << DIGITS);
    for (Py_ssize_t i = 0; i < n; i += LANES) {
        double held[LANES];
        uint64_t digits[LANES], centre[LANES];
        EACH_LANE(lane)
            held[lane] = L[i + lane] > lowest ? L[i + lane] : lowest;
        EACH_LANE(lane)
            held[lane] = held[lane] < LAST_EDGE ? held[lane] : LAST_EDGE;
        EACH_LANE(lane)
            digits[lane] = (to_bits(held[lane]) + HAIR) >> DIGITS;
        EACH_LANE(lane)
            centre[lane] = (digits[lane] << DIGITS) | (1ULL << (DIGITS - 1));
        EACH_LANE(lane)
            centre[lane] = digits[lane] == FIRST ? first_centre : centre[lane];
        EACH_LANE(lane)
            centre[lane] = digits[lane] == FIRST + CELLS - 1 ? last_centre : centre[lane];
        EACH_LANE(lane)
            kind[i + lane] = ((digits[lane] - FIRST) << 2) | (to_bits(marked[i + lane]) >> 62);
        EACH_LANE(lane)
            d[i + lane] = L[i + lane] - from_bits(centre[lane]);
    }
}

INLINE void add_moments(double *sums, double d)
{
    double square = d * d;
    sums[0] += 1.0;
    sums[1] += d;
    sums[2] += square;
    sums[3] += square * d;
}

#if (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)) && !defined(SAFECAL_PLAIN)
typedef double Four __attribute__((vector_size(32)));
#define ADD(k, row) (*(Four *)__builtin_assume_aligned(spectrum + MOMENTS * (k), 32) += (row))

/* Add {1, d, d^2, d^3} of four rows at a time: columns of four numbers, turned into rows. */
FAST static void scatter(const uint64_t *restrict kind, const double *restrict d, Py_ssize_t n,
                         double *restrict spectrum)
{
    const Four one = {1.0, 1.0, 1.0, 1.0};
    Py_ssize_t i = 0;
    for (; i + 4 <= n; i += 4) {
        Four x = {d[i], d[i + 1], d[i + 2], d[i + 3]}, square = x * x, cube = square * x;
        Four a = __builtin_shufflevector(one, x, 0, 4, 2, 6), b = __builtin_shufflevector(square, cube, 0, 4, 2, 6);
        Four e = __builtin_shufflevector(one, x, 1, 5, 3, 7), f = __builtin_shufflevector(square, cube, 1, 5, 3, 7);
        ADD(kind[i], __builtin_shufflevector(a, b, 0, 1, 4, 5));
        ADD(kind[i + 1], __builtin_shufflevector(e, f, 0, 1, 4, 5));
        ADD(kind[i + 2], __builtin_shufflevector(a, b, 2, 3, 6, 7));
        ADD(kind[i + 3], __builtin_shufflevector(e, f, 2, 3, 6, 7));
    }
    for (; i < n; i++)
        add_moments(spectrum + MOMENTS * kind[i], d[i]);
}
#else
static void scatter(const uint64_t *kind, const double *d, Py_ssize_t n, double *spectrum)
{
    for (Py_ssize_t i = 0; i < n; i++)
        add_moments(spectrum + MOMENTS * kind[i], d[i]);
}
#endif

/* Add numbers to others, and set them to 0; without a branch, since many cells are empty and many are not. */
FAST static void move_sums(double *restrict from, double *restrict to, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        to[i] += from[i];
        from[i] = 0.0;
    }
}

void safecal_keep_spectrum(const BinaryRows *rows, BinaryWork *work)
{
    Py_ssize_t last = MOMENTS * (KINDS - 4);
    move_sums(work->spectrum, rows->spectrum, last);
    for (Py_ssize_t i = last; i < MOMENTS * KINDS; i += MOMENTS) /* squares of the last cell may overflow */
        move_sums(work->spectrum + i, rows->spectrum + i, 2);
    memset(work->spectrum + last, 0, 4 * MOMENTS * sizeof *work->spectrum);
    work->in_spectrum = 0;
}

void safecal_add_spectrum(const BinaryRows *rows, BinaryWork *work, const double *marked, const double *L, int32_t n)
{
    uint64_t kind[RUN];
    double d[RUN];
    to_kinds(marked, L, n, kind, d);
    if (work->certain)
        for (int32_t i = 0; i < n; i++)
            if (unmarked(marked[i]) == 0.0)
                kind[i] = KINDS;
    scatter(kind, d, n, work->spectrum);
    work->in_spectrum += n;
    if (work->in_spectrum >= MOST_ADDED)
        safecal_keep_spectrum(rows, work);
}
