/* The spectrum of two-outcome rows: moments by cell of their log-odds, as `cells.py` defines them. */

#include "_compiled.h"
#include "_elementary.h"

#define DIGITS 48             /* a float shifted by so many bits keeps its exponent and four digits */
#define HAIR (1ULL << 12)     /* so many last digits below a round number an edge lies */
#define FIRST 0x3f6fULL       /* what is left of a float of the first cell */
#define LEAST_EDGE 0.00390625 /* 2**-8 */
#define LAST_EDGE 1048576.0   /* 2**20 */
#define MOST_ADDED 16384      /* rows summed by themselves, for the sake of the last digits */

/* Number the cell of each row, and its kind within the cell. */
FAST static void to_kinds(const double *restrict marked, const double *restrict L, Py_ssize_t n,
                          uint64_t *restrict kind)
{
    const double lowest = from_bits(FIRST << DIGITS);
    for (Py_ssize_t i = 0; i < n; i += LANES)
        EACH_LANE(lane) {
            double low = L[i + lane] > lowest ? L[i + lane] : lowest, held = low < LAST_EDGE ? low : LAST_EDGE;
            uint64_t number = ((to_bits(held) + HAIR) >> DIGITS) - FIRST;
            kind[i + lane] = (number << 2) | (to_bits(marked[i + lane]) >> 62);
        }
}

#if (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)) && !defined(SAFECAL_PLAIN)
typedef double Four __attribute__((vector_size(32)));

/* Add {1, d, d^2, d^3}, which is {1, d, 1, d} times {1, 1, d^2, d^2}. */
FAST static void scatter(const uint64_t *restrict kind, const double *restrict L, Py_ssize_t n,
                         const double *restrict centre, double *restrict spectrum)
{
    const Four one = {1.0, 1.0, 1.0, 1.0};
    for (Py_ssize_t i = 0; i < n; i++) {
        double d = L[i] - centre[kind[i] >> 2], square = d * d;
        Four a = {d, d, d, d}, b = {square, square, square, square};
        Four *sums = (Four *)__builtin_assume_aligned(spectrum + MOMENTS * kind[i], 32);
        *sums += __builtin_shufflevector(one, a, 0, 5, 2, 7) * __builtin_shufflevector(one, b, 0, 1, 6, 7);
    }
}
#else
static void scatter(const uint64_t *kind, const double *L, Py_ssize_t n, const double *centre, double *spectrum)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        double d = L[i] - centre[kind[i] >> 2], square = d * d, *sums = spectrum + MOMENTS * kind[i];
        sums[0] += 1.0;
        sums[1] += d;
        sums[2] += square;
        sums[3] += square * d;
    }
}
#endif

void safecal_begin_spectrum(BinaryWork *work)
{
    work->centre[0] = 0.5 * LEAST_EDGE;
    for (uint64_t k = 1; k < CELLS - 1; k++)
        work->centre[k] = from_bits(((k + FIRST) << DIGITS) | (1ULL << (DIGITS - 1)));
    work->centre[CELLS - 1] = LAST_EDGE;
    work->centre[CELLS] = 0.0;
}

void safecal_keep_spectrum(const BinaryRows *rows, BinaryWork *work)
{
    for (Py_ssize_t i = 0; i < KINDS; i++) {
        double *sums = work->spectrum + MOMENTS * i;
        int kept = i < KINDS - 4 ? MOMENTS : 2; /* squares of the last cell may overflow */
        if (sums[0] == 0.0)
            continue;
        for (int j = 0; j < kept; j++)
            rows->spectrum[MOMENTS * i + j] += sums[j];
        memset(sums, 0, MOMENTS * sizeof *sums);
    }
    work->in_spectrum = 0;
}

void safecal_add_spectrum(const BinaryRows *rows, BinaryWork *work, const double *marked, const double *L, int32_t n)
{
    uint64_t kind[RUN];
    to_kinds(marked, L, n, kind);
    if (work->certain)
        for (int32_t i = 0; i < n; i++)
            if (unmarked(marked[i]) == 0.0)
                kind[i] = KINDS;
    scatter(kind, L, n, work->centre, work->spectrum);
    work->in_spectrum += n;
    if (work->in_spectrum >= MOST_ADDED)
        safecal_keep_spectrum(rows, work);
}
