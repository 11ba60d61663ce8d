/* Logarithm and exponential without branches, so that a compiler can do several at once.

   The number of lanes is fixed and no operation is contracted (see `setup.py`), so every processor gives the same
   result, whatever the width of its registers. */

#ifndef SAFECAL_ELEMENTARY_H
#define SAFECAL_ELEMENTARY_H

#include "_compiled.h"

#include <stdint.h>
#include <string.h>

/* Three versions of a function, of which the processor picks one; SAFECAL_PLAIN leaves the one that runs everywhere. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && __GNUC__ >= 12 && !defined(SAFECAL_PLAIN)
#define FAST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define CHOOSES
#else
#define FAST
#endif

#if defined(_MSC_VER)
#define INLINE static __forceinline
#elif defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

/* A loop over the lanes is one operation of wide registers; unrolled, a compiler sees eight. */
#if defined(__GNUC__) && !defined(__clang__)
#define EACH_LANE(lane) _Pragma("GCC unroll 1") for (int lane = 0; lane < LANES; lane++)
#else
#define EACH_LANE(lane) for (int lane = 0; lane < LANES; lane++)
#endif

#if defined(__GNUC__)
#define PREFETCH(address) __builtin_prefetch(address)
#else
#define PREFETCH(address) ((void)(address))
#endif

#define SIGN 0x8000000000000000ULL
#define MAGNITUDE (~SIGN) /* every bit of a float but its sign */
#define POSITIVE (SIGN >> 1)

INLINE double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

INLINE uint64_t to_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A word of which the byte at the lowest address is full. */
INLINE uint64_t lowest_byte(void)
{
    const uint8_t bytes[8] = {255};
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

INLINE double magnitude(double value)
{
    return from_bits(to_bits(value) & MAGNITUDE);
}

/* The smaller probability of a marked row. */
INLINE double unmarked(double m)
{
    return from_bits(to_bits(m) & ~(SIGN | POSITIVE));
}

/* The sum of the lanes. */
INLINE double added(const double *a)
{
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* One of several floats or doubles, as a double. */
INLINE double value_at(const void *values, int single, Py_ssize_t i)
{
    return single ? (double)((const float *)values)[i] : ((const double *)values)[i];
}

/* log(u) + correction, for a normal u > 0: the polynomial of fdlibm. */
INLINE double log_near(double u, double correction)
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

/* log(1 + x), for x >= 0; from 1 + x = 2 on, nothing is lost. */
INLINE double log_of_one_plus(double x)
{
    double u = 1.0 + x, near = 2.0 - u;
    return log_near(u, (x - (u - 1.0)) * (near > 0.0 ? near : 0.0));
}

/* -log(1 - m) of several rows at once: `some` is 1 - product of (1 - m), without cancellation, `none` the product. */
INLINE double minus_log_of(double some, double none)
{
    double rest = 1.0 - some, lost = ((1.0 - rest) - some) * (2.0 - rest);
    return 0.0 - log_near(some < 0.5 ? rest : none, some < 0.5 ? lost : 0.0);
}

#define LEAST -750.0 /* from here on exp is 0 */

/* For LEAST <= x <= 0: exp(x) = 2**k (1 + q), with k in the last bits of `shifted`. */
typedef struct {
    double shifted, q;
} Power;

INLINE Power power_of(double x)
{
    const double per_ln2 = 1.4426950408889634, ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    const double c0 = 0.5000000000000001, c1 = 0.16666666666666669, c2 = 0.04166666666662413, c3 = 0.008333333333330062;
    const double c4 = 0.0013888888917213717, c5 = 0.00019841269863053618, c6 = 2.4801521295954376e-05;
    const double c7 = 2.7557268459997064e-06, c8 = 2.7620088445409746e-07, c9 = 2.510038549551032e-08;
    const double shift = 6755399441055744.0; /* 3 * 2**51: a sum with it has no digits behind the point */
    Power power;
    double k, r, z, tail;
    power.shifted = x * per_ln2 + shift;
    k = power.shifted - shift;
    r = (x - k * ln2_hi) - k * ln2_lo;
    z = r * r;
    tail = (c0 + z * (c2 + z * (c4 + z * (c6 + z * c8)))) + r * (c1 + z * (c3 + z * (c5 + z * (c7 + z * c9))));
    power.q = r + z * tail;
    return power;
}

/* exp(x), for LEAST <= x <= 0; below 1e-308 it has fewer digits, as every float. */
INLINE double exp_of(double x)
{
    Power power = power_of(x);
    return from_bits(to_bits(1.0 + power.q) + ((to_bits(power.shifted) + 64) << 52)) * 0x1p-64;
}

#endif
