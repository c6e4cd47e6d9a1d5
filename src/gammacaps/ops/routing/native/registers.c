/* Registers of parents: as many numbers as the processor takes at once, and what routing does with a row of them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#ifdef __AVX512F__
#define WIDTH 16
#define TILE 4 /* registers of a capsule's votes that are cast at once, for four samples */
#define INTRINSIC(name) _mm512_##name##_ps
#elif defined __AVX__
#define WIDTH 8
#define TILE 2
#define INTRINSIC(name) _mm256_##name##_ps
#else
#define WIDTH 4
#define TILE 2
#endif

#define TINY 1e-12f /* as in vectors.py */
#define INLINE static inline __attribute__((always_inline))
#define EACH(q) for (int64_t q = 0; q < Q; q++)
#define UPTO(m, N) _Pragma("GCC unroll 8") for (int64_t m = 0; m < N; m++)
#define LANES _Pragma("GCC unroll 16") for (int64_t k = 0; k < WIDTH; k++)

/* Memory need not be aligned to a register. */
typedef float Register __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t WholeFour __attribute__((vector_size(16), aligned(4), may_alias));
typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t WholeEight __attribute__((vector_size(32), aligned(4), may_alias));

/* ---- one register ---- */

INLINE Register all(float x) { return x - (Register){0}; }

/* Both give x where it is not a number. */
INLINE Register at_least(Register x, float least) {
#ifdef __AVX__
    return (Register)INTRINSIC(max)(all(least), x);
#else
    Whole low = x < all(least);
    return (Register)((low & (Whole)all(least)) | (~low & (Whole)x));
#endif
}

INLINE Register at_most(Register x, float most) {
#ifdef __AVX__
    return (Register)INTRINSIC(min)(all(most), x);
#else
    Whole high = x > all(most);
    return (Register)((high & (Whole)all(most)) | (~high & (Whole)x));
#endif
}

INLINE Register where(Whole so, Register x) { return (Register)(so & (Whole)x); } /* else 0 */

INLINE Register root(Register x) {
#ifdef __AVX__
    return (Register)INTRINSIC(sqrt)(x);
#else
    LANES x[k] = sqrtf(x[k]);
    return x;
#endif
}

/* exp(x) to 2 roundings, for x <= 0. */
INLINE Register exponential(Register x) {
    const float shift = 12582912.0f + 127; /* adding it rounds to a whole number, which stands in the last bits */
    x = at_least(x, -87.0f);
    Register bits = x * 1.44269504f + shift, n = bits - shift;
    Register y = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    Register p = y * 1.3888889e-3f + 8.3333333e-3f;
    p = p * y + 4.1666667e-2f;
    p = p * y + 1.6666667e-1f;
    p = p * y + 0.5f;
    p = p * y + 1.0f;
    p = p * y + 1.0f;
    return p * (Register)((Whole)bits << 23);
}

/* Asks for what will soon be read, as the processor does not foresee it; it may lie behind the end. */
INLINE void soon(const Register *x, int64_t N) {
    for (int64_t m = 0; m < N; m++) __builtin_prefetch(x + m);
}

/* ---- sums within registers ---- */

/* The sums of every fourth number. */
INLINE Four fourths(Register x) {
#ifdef __AVX512F__
    __m256d high = _mm512_extractf64x4_pd((__m512d)x, 1);
    __m256 y = _mm512_castps512_ps256((__m512)x) + (__m256)high;
    return (Four)(_mm256_castps256_ps128(y) + _mm256_extractf128_ps(y, 1));
#elif defined __AVX__
    return (Four)(_mm256_castps256_ps128((__m256)x) + _mm256_extractf128_ps((__m256)x, 1));
#else
    return (Four)x;
#endif
}

/* The sum of each of four registers. */
INLINE Four sums(Register a, Register b, Register c, Register d) {
    Four w = fourths(a), x = fourths(b), y = fourths(c), z = fourths(d);
    w = __builtin_shuffle(w, x, (WholeFour){0, 1, 4, 5}) + __builtin_shuffle(w, x, (WholeFour){2, 3, 6, 7});
    y = __builtin_shuffle(y, z, (WholeFour){0, 1, 4, 5}) + __builtin_shuffle(y, z, (WholeFour){2, 3, 6, 7});
    return __builtin_shuffle(w, y, (WholeFour){0, 2, 4, 6}) + __builtin_shuffle(w, y, (WholeFour){1, 3, 5, 7});
}

INLINE float sum(Register x) {
    Four y = fourths(x);
    return (y[0] + y[1]) + (y[2] + y[3]);
}

/* The largest parent of a row. */
INLINE float largest(const Register *x, int64_t Q) {
    Register y = x[0];
    for (int64_t q = 1; q < Q; q++) {
        Whole more = x[q] > y;
        y = (Register)((more & (Whole)x[q]) | (~more & (Whole)y));
    }
#ifdef __AVX512F__
    return _mm512_reduce_max_ps((__m512)y);
#else
#ifdef __AVX__
    Four z = (Four)_mm_max_ps(_mm256_castps256_ps128((__m256)y), _mm256_extractf128_ps((__m256)y, 1));
#else
    Four z = (Four)y;
#endif
    float one = z[0] > z[1] ? z[0] : z[1], other = z[2] > z[3] ? z[2] : z[3];
    return one > other ? one : other;
#endif
}

/* ---- rows of Q registers: parents; N of them lie one after the other ---- */

/* The sum over the parents of each of N <= 4 rows. */
INLINE Four totals(const Register *x, int64_t N, int64_t Q) {
    Register y[4] = {{0}, {0}, {0}, {0}};
    UPTO(m, N) {
        y[m] = x[m * Q];
        for (int64_t q = 1; q < Q; q++) y[m] += x[m * Q + q];
    }
    return N == 1 ? (Four){sum(y[0])} : sums(y[0], y[1], y[2], y[3]);
}

INLINE float total(const Register *x, int64_t Q) { return totals(x, 1, Q)[0]; }

/* ---- votes: D rows, an entry each ---- */

/* out_j = sum over entries of u_j v_j, for N capsules' votes u. */
INLINE void dots(const Register *u, const Register *v, Register *out, int64_t N, int64_t Q, int64_t D) {
    EACH(q) {
        Register x[4];
        UPTO(m, N) x[m] = u[m * D * Q + q] * v[q];
        for (int64_t e = 1; e < D; e++) UPTO(m, N) x[m] += u[(m * D + e) * Q + q] * v[e * Q + q];
        UPTO(m, N) out[m * Q + q] = x[m];
    }
}

/* out_j = |u_j - v_j|, for N capsules. */
INLINE void distances(const Register *u, const Register *v, Register *out, int64_t N, int64_t Q, int64_t D) {
    EACH(q) {
        Register x[4];
        UPTO(m, N) x[m] = all(0);
        for (int64_t e = 0; e < D; e++)
            UPTO(m, N) {
                Register apart = u[(m * D + e) * Q + q] - v[e * Q + q];
                x[m] += apart * apart;
            }
        UPTO(m, N) out[m * Q + q] = root(x[m]);
    }
}

/* to_j += c_j u_j, for N capsules. */
INLINE void add_votes(Register *to, const Register *c, const Register *u, int64_t N, int64_t Q, int64_t D) {
    for (int64_t e = 0; e < D; e++)
        EACH(q) {
            Register x = to[e * Q + q];
            UPTO(m, N) x += c[m * Q + q] * u[(m * D + e) * Q + q];
            to[e * Q + q] = x;
        }
}

INLINE void squash(const Register *s, Register *v, int64_t Q, int64_t D) {
    Register factor[Q];
    dots(s, s, factor, 1, Q, D);
    EACH(q) factor[q] = root(factor[q]) / (1 + factor[q]);
    for (int64_t e = 0; e < D; e++) EACH(q) v[e * Q + q] = factor[q] * s[e * Q + q];
}

/* The gradient at s of squash(s). */
INLINE void squash_gradient(const Register *s, const Register *grad, Register *out, int64_t Q, int64_t D) {
    Register first[Q], second[Q];
    dots(s, s, first, 1, Q, D);
    dots(s, grad, second, 1, Q, D);
    EACH(q) {
        Register square = first[q], norm = root(square), whole = 1 + square;
        first[q] = norm / whole;
        second[q] = second[q] / at_least(norm, TINY) * (1 - square) / (whole * whole);
    }
    for (int64_t e = 0; e < D; e++) EACH(q) out[e * Q + q] = grad[e * Q + q] * first[q] + s[e * Q + q] * second[q];
}

/* ---- from entries of parents to parents of entries ---- */

/* Eight rows of eight become eight columns. */
INLINE void turn_eight(const float *from, int64_t from_row, float *to, int64_t to_row) {
    Eight a[8], b[8];
    UPTO(k, 8) a[k] = *(const Eight *)(from + k * from_row);
    for (int k = 0; k < 8; k += 2) {
        b[k] = __builtin_shuffle(a[k], a[k + 1], (WholeEight){0, 8, 2, 10, 4, 12, 6, 14});
        b[k + 1] = __builtin_shuffle(a[k], a[k + 1], (WholeEight){1, 9, 3, 11, 5, 13, 7, 15});
    }
    for (int k = 0; k < 8; k += 4)
        for (int l = 0; l < 2; l++) {
            a[k + l] = __builtin_shuffle(b[k + l], b[k + l + 2], (WholeEight){0, 1, 8, 9, 4, 5, 12, 13});
            a[k + l + 2] = __builtin_shuffle(b[k + l], b[k + l + 2], (WholeEight){2, 3, 10, 11, 6, 7, 14, 15});
        }
    for (int k = 0; k < 4; k++) {
        *(Eight *)(to + k * to_row) = __builtin_shuffle(a[k], a[k + 4], (WholeEight){0, 1, 2, 3, 8, 9, 10, 11});
        *(Eight *)(to + (k + 4) * to_row) = __builtin_shuffle(a[k], a[k + 4], (WholeEight){4, 5, 6, 7, 12, 13, 14, 15});
    }
}

/* A matrix of n x m to one of m x n, whose rows lie apart by from_row and to_row. */
static void turn(const float *from, int64_t from_row, float *to, int64_t to_row, int64_t n, int64_t m) {
    int64_t n8 = n / 8 * 8, m8 = m / 8 * 8;
    for (int64_t x = 0; x < n8; x += 8)
        for (int64_t y = 0; y < m8; y += 8) turn_eight(from + x * from_row + y, from_row, to + y * to_row + x, to_row);
    for (int64_t x = 0; x < n; x++)
        for (int64_t y = x < n8 ? m8 : 0; y < m; y++) to[y * to_row + x] = from[x * from_row + y];
}

/* J D to rows of parents, filled up with zeros; and back. */
static void to_rows(const float *plain, Register *rows, int64_t J, int64_t Q, int64_t D) {
    if (J % WIDTH) memset(rows, 0, D * Q * sizeof(Register));
    turn(plain, D, (float *)rows, Q * WIDTH, J, D);
}

static void from_rows(const Register *rows, float *plain, int64_t J, int64_t Q, int64_t D) {
    turn((const float *)rows, Q * WIDTH, plain, D, D, J);
}
