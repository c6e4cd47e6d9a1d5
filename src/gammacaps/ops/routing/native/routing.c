/* Routing of a batch on a CPU. Votes are cast by some capsules for all samples, whose matrices stay in the cache; then
 * each sample is routed on its own, so that its votes stay in the cache through all iterations.
 *
 * The formulas are those of ../rules.py, their gradient that of ../written_out.py; names and letters are theirs.
 * A capsule's votes are D rows of parents, a row being Q registers of eight parents: J filled up with zeros. So sums
 * over entries and over capsules need no shuffling.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __AVX__
#include <immintrin.h>
#endif

#define TINY 1e-12f           /* as in vectors.py */
#define LEAST 1.17549435e-38f /* the least normal float32 */
#define NEAR 1.1920929e-5f    /* 100 roundings: nearer to its parent than this, a vote has no direction from it */
#define NEVER -1e30f          /* the logit of a parent that only fills up */
#define INLINE static inline __attribute__((always_inline))
#define BLOCK 8               /* capsules that cast their votes together */
#define EACH(q) for (int64_t q = 0; q < Q; q++)
#define ENTRIES(x) for (int64_t x = 0; x < D * Q; x++)

typedef float Eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(32), aligned(4), may_alias));

typedef struct {
    int64_t B, I, J, d, D, r; /* r iterations */
    int sda;                  /* else routing by agreement */
    float scale;              /* b = scale * distance / usual distance */
    int threads;
} Shape;

/* ---- eight numbers ---- */

INLINE Eight all(float x) { return (Eight){x, x, x, x, x, x, x, x}; }
INLINE Eight chosen(Whole where, Eight yes, Eight no) { return (Eight)((where & (Whole)yes) | (~where & (Whole)no)); }
INLINE Eight at_least(Eight x, float least) { return chosen(x < all(least), all(least), x); } /* keeps a NaN */

INLINE Eight root(Eight x) {
#ifdef __AVX__
    return (Eight)_mm256_sqrt_ps((__m256)x);
#else
    for (int k = 0; k < 8; k++) x[k] = sqrtf(x[k]);
    return x;
#endif
}

INLINE float sum(Eight x) {
    x += __builtin_shuffle(x, (Whole){4, 5, 6, 7, 0, 1, 2, 3});
    x += __builtin_shuffle(x, (Whole){2, 3, 0, 1, 6, 7, 4, 5});
    return x[0] + x[1];
}

INLINE float largest(Eight x) {
    Eight y = __builtin_shuffle(x, (Whole){4, 5, 6, 7, 0, 1, 2, 3});
    x = chosen(y > x, y, x);
    y = __builtin_shuffle(x, (Whole){2, 3, 0, 1, 6, 7, 4, 5});
    x = chosen(y > x, y, x);
    return x[1] > x[0] ? x[1] : x[0];
}

/* exp(x) to 2 roundings, for x <= 0. */
INLINE Eight exponential(Eight x) {
    x = at_least(x, -87.0f);
    Eight n = (x * 1.44269504f + 12582912.0f) - 12582912.0f; /* to the nearest whole number */
    Eight y = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    Eight p = y * 1.3888889e-3f + 8.3333333e-3f;
    p = p * y + 4.1666667e-2f;
    p = p * y + 1.6666667e-1f;
    p = p * y + 0.5f;
    p = p * y + 1.0f;
    p = p * y + 1.0f;
    return p * (Eight)((__builtin_convertvector(n, Whole) + 127) << 23);
}

/* ---- rows of parents ---- */

INLINE float total(const Eight *x, int64_t Q) {
    Eight y = x[0];
    for (int64_t q = 1; q < Q; q++) y += x[q];
    return sum(y);
}

/* out_j = sum over entries of a_j b_j. */
INLINE void dots(const Eight *a, const Eight *b, Eight *out, int64_t D, int64_t Q) {
    EACH(q) {
        Eight x = a[q] * b[q];
        for (int64_t e = 1; e < D; e++) x += a[e * Q + q] * b[e * Q + q];
        out[q] = x;
    }
}

/* out_j = |u_j - v_j|. */
INLINE void distances(const Eight *u, const Eight *v, Eight *out, int64_t D, int64_t Q) {
    EACH(q) {
        Eight x = (u[q] - v[q]) * (u[q] - v[q]);
        for (int64_t e = 1; e < D; e++) {
            Eight apart = u[e * Q + q] - v[e * Q + q];
            x += apart * apart;
        }
        out[q] = root(x);
    }
}

/* to_j += c_j u_j. */
INLINE void add_votes(Eight *to, const Eight *c, const Eight *u, int64_t D, int64_t Q) {
    for (int64_t e = 0; e < D; e++) EACH(q) to[e * Q + q] += c[q] * u[e * Q + q];
}

/* c = softmax(b) over the parents of one capsule. */
INLINE void softmax(const Eight *b, const Eight *filling, Eight *c, int64_t Q) {
    float most = NEVER;
    EACH(q) {
        float here = largest(b[q] + filling[q]);
        most = here > most ? here : most;
    }
    EACH(q) c[q] = exponential(b[q] + filling[q] - most);
    float share = 1 / total(c, Q);
    EACH(q) c[q] *= share;
}

INLINE void squash(const Eight *s, Eight *v, int64_t D, int64_t Q) {
    Eight factor[Q];
    dots(s, s, factor, D, Q);
    EACH(q) factor[q] = root(factor[q]) / (1 + factor[q]);
    for (int64_t e = 0; e < D; e++) EACH(q) v[e * Q + q] = factor[q] * s[e * Q + q];
}

/* The gradient at s of squash(s). */
INLINE void squash_gradient(const Eight *s, const Eight *grad, Eight *out, int64_t D, int64_t Q) {
    Eight first[Q], second[Q];
    dots(s, s, first, D, Q);
    dots(s, grad, second, D, Q);
    EACH(q) {
        Eight square = first[q], norm = root(square), whole = 1 + square;
        first[q] = norm / whole;
        second[q] = second[q] / at_least(norm, TINY) * (1 - square) / (whole * whole);
    }
    for (int64_t e = 0; e < D; e++) EACH(q) out[e * Q + q] = grad[e * Q + q] * first[q] + s[e * Q + q] * second[q];
}

/* 0 for parents, NEVER for what fills up a row. */
INLINE void fill(Eight *filling, int64_t J, int64_t Q) {
    EACH(q) for (int k = 0; k < 8; k++) filling[q][k] = 8 * q + k < J ? 0 : NEVER;
}

/* ---- votes ---- */

INLINE float length(const float *pose, int64_t d) {
    float square = 0;
    for (int64_t e = 0; e < d; e++) square += pose[e] * pose[e];
    return sqrtf(square);
}

/* Eight rows of eight become eight columns. */
INLINE void turn_eight(const float *from, int64_t from_row, float *to, int64_t to_row) {
    Eight a[8], b[8];
    for (int k = 0; k < 8; k++) a[k] = *(const Eight *)(from + k * from_row);
    for (int k = 0; k < 8; k += 2) {
        b[k] = __builtin_shuffle(a[k], a[k + 1], (Whole){0, 8, 2, 10, 4, 12, 6, 14});
        b[k + 1] = __builtin_shuffle(a[k], a[k + 1], (Whole){1, 9, 3, 11, 5, 13, 7, 15});
    }
    for (int k = 0; k < 8; k += 4)
        for (int l = 0; l < 2; l++) {
            a[k + l] = __builtin_shuffle(b[k + l], b[k + l + 2], (Whole){0, 1, 8, 9, 4, 5, 12, 13});
            a[k + l + 2] = __builtin_shuffle(b[k + l], b[k + l + 2], (Whole){2, 3, 10, 11, 6, 7, 14, 15});
        }
    for (int k = 0; k < 4; k++) {
        *(Eight *)(to + k * to_row) = __builtin_shuffle(a[k], a[k + 4], (Whole){0, 1, 2, 3, 8, 9, 10, 11});
        *(Eight *)(to + (k + 4) * to_row) = __builtin_shuffle(a[k], a[k + 4], (Whole){4, 5, 6, 7, 12, 13, 14, 15});
    }
}

/* A matrix of n x m to one of m x n, whose rows lie apart by from_row and to_row. */
INLINE void turn(const float *from, int64_t from_row, float *to, int64_t to_row, int64_t n, int64_t m) {
    int64_t n8 = n / 8 * 8, m8 = m / 8 * 8;
    for (int64_t x = 0; x < n8; x += 8)
        for (int64_t y = 0; y < m8; y += 8) turn_eight(from + x * from_row + y, from_row, to + y * to_row + x, to_row);
    for (int64_t x = 0; x < n; x++)
        for (int64_t y = x < n8 ? m8 : 0; y < m; y++) to[y * to_row + x] = from[x * from_row + y];
}

/* out (m) = a (n) times b (n m). */
INLINE void times(const float *a, const float *b, float *out, int64_t n, int64_t m) {
    int64_t x = 0;
    for (; x + 8 <= m; x += 8) {
        Eight y = a[0] * *(const Eight *)(b + x);
        for (int64_t e = 1; e < n; e++) y += a[e] * *(const Eight *)(b + e * m + x);
        *(Eight *)(out + x) = y;
    }
    for (; x < m; x++) {
        out[x] = 0;
        for (int64_t e = 0; e < n; e++) out[x] += a[e] * b[e * m + x];
    }
}

INLINE float dot(const float *a, const float *b, int64_t m) {
    Eight y = {0};
    int64_t x = 0;
    for (; x + 8 <= m; x += 8) y += *(const Eight *)(a + x) * *(const Eight *)(b + x);
    float rest = sum(y);
    for (; x < m; x++) rest += a[x] * b[x];
    return rest;
}

INLINE void add_scaled(float *to, const float *from, float by, int64_t m) {
    int64_t x = 0;
    for (; x + 8 <= m; x += 8) *(Eight *)(to + x) += by * *(const Eight *)(from + x);
    for (; x < m; x++) to[x] += by * from[x];
}

/* The votes of one capsule, for SDA shortened to the length of its pose; ratio is by how much. raw: room for J D. */
INLINE void cast_votes(
    const float *weight, const float *pose, float *raw, Eight *u, Eight *ratio, const Shape *n, int64_t Q
) {
    int64_t J = n->J, D = n->D;
    times(pose, weight, raw, n->d, J * D);
    if (J % 8) memset(u, 0, D * Q * sizeof(Eight));
    turn(raw, D, (float *)u, 8 * Q, J, D);
    if (!n->sda) return;
    Eight most = at_least(all(length(pose, n->d)), 2 * LEAST);
    dots(u, u, ratio, D, Q);
    EACH(q) {
        Eight part = most / at_least(root(ratio[q]), LEAST);
        ratio[q] = chosen(part < 1, part, all(1));
    }
    for (int64_t e = 0; e < D; e++) EACH(q) u[e * Q + q] *= ratio[q];
}

/* ---- routing ---- */

/* The mean distance of one capsule to its parents, and never 0. */
INLINE float usual_distance(const Eight *distance, int64_t J, int64_t Q) {
    float mean = total(distance, Q) / J;
    return mean < TINY ? TINY : mean;
}

/* The couplings of one capsule, from the parents v of the iteration before; the logits b of RBA are added to. */
INLINE void couple(
    const Eight *u, const Eight *v, const Eight *filling, Eight *b, Eight *distance, Eight *c, const Shape *n, int64_t Q
) {
    if (n->sda) {
        distances(u, v, distance, n->D, Q);
        float factor = n->scale / usual_distance(distance, n->J, Q);
        EACH(q) b[q] = distance[q] * factor;
    } else {
        dots(u, v, distance, n->D, Q);
        EACH(q) b[q] += distance[q];
    }
    softmax(b, filling, c, Q);
}

/* One sample's votes to its parents. room: I Q + D Q. */
INLINE void route(
    const Eight *u, const float *bias, Eight *sums, float *couplings, Eight *room, const Shape *n, int64_t Q
) {
    int64_t I = n->I, J = n->J, D = n->D, DQ = D * Q;
    Eight *b = room, *v = b + I * Q, c[Q], distance[Q], filling[Q];
    fill(filling, J, Q);
    if (!n->sda) memset(b, 0, I * Q * sizeof(Eight));
    EACH(q) c[q] = chosen(filling[q] < 0, all(0), all(1.0f / J));
    for (int64_t k = 0; k < n->r; k++) {
        Eight *s = sums + k * n->B * DQ;
        memset(s, 0, DQ * sizeof(Eight));
        for (int64_t i = 0; i < I; i++) {
            if (k > 0) couple(u + i * DQ, v, filling, b + i * Q, distance, c, n, Q);
            add_votes(s, c, u + i * DQ, D, Q);
            if (k == n->r - 1) memcpy(couplings + i * J, c, J * sizeof(float));
        }
        for (int64_t x = 0; bias && x < J * D; x++) ((float *)s)[x % D * 8 * Q + x / D] += bias[x];
        squash(s, v, D, Q);
    }
}

/* The gradient of one capsule's couplings: from grad at c to a at the distances, divided by them; of RBA at b. */
INLINE void couple_gradient(Eight *grad, const Eight *c, const Eight *distance, Eight *a, const Shape *n, int64_t Q) {
    Eight part[Q];
    EACH(q) part[q] = c[q] * grad[q];
    float whole = total(part, Q);
    EACH(q) grad[q] = c[q] * (grad[q] - whole);
    if (!n->sda) {
        EACH(q) a[q] += grad[q]; /* logits are added to, and so are their gradients */
        return;
    }
    float usual = usual_distance(distance, n->J, Q);
    EACH(q) part[q] = grad[q] * distance[q];
    float mean = usual > TINY ? total(part, Q) / n->J / usual : 0; /* a mean raised to TINY is a constant */
    float factor = n->scale / usual;
    EACH(q) a[q] = distance[q] * (grad[q] - mean) * factor / at_least(distance[q] * distance[q], NEAR * NEAR);
}

/* What one sample's backward pass hands from routing to the votes: c^k and a^k (of k >= 1), what points along u, the
 * gradients gs^k at s^k, and v^k. */
typedef struct { Eight *c, *a, *radial, *gs, *v; } Kept;

INLINE Kept kept_in(Eight *memory, const Shape *n, int64_t Q) {
    int64_t IQ = n->I * Q, r = n->r;
    Eight *gs = memory + (2 * r + 1) * IQ;
    return (Kept){memory, memory + r * IQ, memory + 2 * r * IQ, gs, gs + r * n->D * Q};
}

/* One sample backward through routing. room: 2 D Q. */
INLINE void route_back(
    const Eight *u, const Eight *sums, const float *grad_v, const float *grad_c, Eight *grad_bias, Kept to, Eight *room,
    const Shape *n, int64_t Q
) {
    int64_t I = n->I, J = n->J, D = n->D, r = n->r, DQ = D * Q, IQ = I * Q;
    Eight *gv = room, *moved = gv + DQ, distance[Q], grad[Q], logits[Q], along_v[Q], by_parent[Q], filling[Q];
    fill(filling, J, Q);
    memset(to.c, 0, (2 * r + 1) * IQ * sizeof(Eight));
    memset(gv, 0, DQ * sizeof(Eight));
    turn(grad_v, D, (float *)gv, 8 * Q, J, D);
    memset(grad_bias, 0, DQ * sizeof(Eight));
    for (int64_t k = 0; k < r; k++) squash(sums + k * n->B * DQ, to.v + k * DQ, D, Q);
    if (!n->sda) /* the logits of RBA add up from below; `radial`, which is SDA's, holds them */
        for (int64_t k = 1; k < r; k++)
            for (int64_t i = 0; i < I; i++)
                couple(u + i * DQ, to.v + (k - 1) * DQ, filling, to.radial + i * Q, distance, to.c + k * IQ + i * Q, n, Q);
    for (int64_t k = r - 1; k > 0; k--) {
        Eight *gs = to.gs + k * DQ;
        const Eight *before = to.v + (k - 1) * DQ;
        squash_gradient(sums + k * n->B * DQ, gv, gs, D, Q);
        ENTRIES(x) grad_bias[x] += gs[x], moved[x] = all(0);
        EACH(q) by_parent[q] = all(0); /* the sum over capsules of a */
        for (int64_t i = 0; i < I; i++) {
            const Eight *ui = u + i * DQ;
            Eight *c = to.c + k * IQ + i * Q, *a = to.a + k * IQ + i * Q, *radial = to.radial + i * Q;
            dots(ui, gs, grad, D, Q);
            if (n->sda) {
                couple(ui, before, filling, logits, distance, c, n, Q);
                EACH(q) radial[q] += c[q] * grad[q];
            } else if (k < r - 1) {
                EACH(q) a[q] = a[IQ + q];
            }
            for (int64_t j = 0; grad_c && k == r - 1 && j < J; j++) grad[j / 8][j % 8] += grad_c[i * J + j];
            couple_gradient(grad, c, distance, a, n, Q);
            if (n->sda) {
                dots(ui, before, along_v, D, Q);
                EACH(q) radial[q] -= a[q] * along_v[q];
                EACH(q) by_parent[q] += a[q];
            }
            add_votes(moved, a, ui, D, Q);
        }
        for (int64_t e = 0; e < D; e++)
            EACH(q) {
                int64_t x = e * Q + q;
                if (n->sda) gv[x] = before[x] * by_parent[q] - moved[x];
                else gv[x] = moved[x];
            }
    }
    squash_gradient(sums, gv, to.gs, D, Q);
    ENTRIES(x) grad_bias[x] += to.gs[x];
}

/* One capsule's votes backward: raw (J D) is the gradient at them before they were shortened. Gives what the capsule's
 * own length gets, as a factor of its pose. room: D Q. */
INLINE float votes_back(
    int64_t i, const Eight *u, const float *pose, const Eight *ratio, Kept from, float *raw, Eight *room, const Shape *n,
    int64_t Q
) {
    int64_t D = n->D, r = n->r, DQ = D * Q, IQ = n->I * Q;
    Eight along[Q], with_u[Q], with_gs[Q], with_v[Q], factor[Q];
    float own_length = 0;
    EACH(q) with_u[q] = all(0), factor[q] = n->sda ? ratio[q] : all(1);
    if (n->sda) {
        float most = length(pose, n->d), square = most < TINY ? TINY * TINY : most * most;
        dots(u, from.gs, along, D, Q);
        for (int64_t k = 1; k < r; k++) EACH(q) with_u[q] += from.a[k * IQ + i * Q + q];
        EACH(q) {
            Eight whole = (from.radial[i * Q + q] + along[q] / (float)n->J) / square + with_u[q];
            along[q] = chosen(ratio[q] < 1, whole, all(0)); /* a vote that was shortened has its capsule's length */
            with_u[q] = (with_u[q] - along[q]) * ratio[q];
        }
        own_length = total(along, Q);
    }
    EACH(q) with_gs[q] = factor[q] / (float)n->J;
    for (int64_t e = 0; e < D; e++)
        EACH(q) room[e * Q + q] = u[e * Q + q] * with_u[q] + with_gs[q] * from.gs[e * Q + q];
    for (int64_t k = 1; k < r; k++) {
        const Eight *gs = from.gs + k * DQ, *v = from.v + (k - 1) * DQ;
        EACH(q) {
            with_gs[q] = factor[q] * from.c[k * IQ + i * Q + q];
            with_v[q] = (n->sda ? -factor[q] : factor[q]) * from.a[k * IQ + i * Q + q];
        }
        for (int64_t e = 0; e < D; e++)
            EACH(q) room[e * Q + q] += with_gs[q] * gs[e * Q + q] + with_v[q] * v[e * Q + q];
    }
    turn((const float *)room, 8 * Q, raw, D, D, n->J);
    return own_length;
}

/* ---- batches ---- */

/* A team of threads, each with its own room, running a body that is compiled anew for common Q, so that registers hold
 * whole rows; gives 1 where there is no memory for it. */
#define TEAM(room_size, body)                                                                                          \
    int failed = 0;                                                                                                    \
    int64_t registers = (n->J + 7) / 8;                                                                                \
    _Pragma("omp parallel num_threads(n->threads) reduction(|: failed)") {                                             \
        int64_t Q = registers;                                                                                         \
        Eight *room = malloc((size_t)(room_size) * sizeof(Eight));                                                     \
        failed |= !room;                                                                                               \
        if (Q == 1) { enum { Q = 1 }; body }                                                                           \
        else if (Q == 2) { enum { Q = 2 }; body }                                                                      \
        else if (Q == 4) { enum { Q = 4 }; body }                                                                      \
        else { body }                                                                                                  \
        free(room);                                                                                                    \
    }                                                                                                                  \
    return failed;

/* poses (B I d), weight (I d J D), bias (J D) or null; u (B I D Q): the votes, bounded; ratio (B I Q): for SDA by how
 * much; sums (r B D Q): s^k; couplings (B I J): of the last iteration. */
int forward(
    const float *poses, const float *weight, const float *bias, Eight *u, Eight *ratio, Eight *sums, float *couplings,
    const Shape *n
) {
    int64_t I = n->I, d = n->d, D = n->D, JD = n->J * D;
    TEAM(I * Q + D * Q + JD / 8 + 1, {
        _Pragma("omp for") for (int64_t first = 0; first < I; first += BLOCK)
            for (int64_t b = 0; room && b < n->B; b++)
                for (int64_t i = first; i < first + BLOCK && i < I; i++) {
                    int64_t at = b * I + i;
                    cast_votes(weight + i * d * JD, poses + at * d, (float *)room, u + at * D * Q, ratio + at * Q, n, Q);
                }
        _Pragma("omp for") for (int64_t b = 0; b < n->B; b++)
            if (room) route(u + b * I * D * Q, bias, sums + b * D * Q, couplings + b * I * n->J, room, n, Q);
    })
}

/* grad_v (B J D), grad_c (B I J) or null; grad_poses (B I d); grad_weight (I d J D) or null where nobody asks;
 * grad_bias (B D Q); memory: B times (2 r + 1) I Q + 2 r D Q. */
int backward(
    const float *poses, const float *weight, const Eight *u, const Eight *ratio, const Eight *sums, const float *grad_v,
    const float *grad_c, float *grad_poses, float *grad_weight, Eight *grad_bias, Eight *memory, const Shape *n
) {
    int64_t I = n->I, d = n->d, r = n->r, D = n->D, JD = n->J * D;
    TEAM(2 * D * Q + JD / 8 + 1, {
        int64_t sample = (2 * r + 1) * I * Q + 2 * r * D * Q;
        float *raw = (float *)(room + 2 * D * Q);
        _Pragma("omp for") for (int64_t b = 0; b < n->B; b++)
            if (room)
                route_back(u + b * I * D * Q, sums + b * D * Q, grad_v + b * JD, grad_c ? grad_c + b * I * n->J : 0,
                           grad_bias + b * D * Q, kept_in(memory + b * sample, n, Q), room, n, Q);
        _Pragma("omp for") for (int64_t first = 0; first < I; first += BLOCK) {
            int64_t end = first + BLOCK < I ? first + BLOCK : I;
            if (grad_weight) memset(grad_weight + first * d * JD, 0, (end - first) * d * JD * sizeof(float));
            for (int64_t b = 0; room && b < n->B; b++)
                for (int64_t i = first; i < end; i++) {
                    int64_t at = b * I + i;
                    const float *pose = poses + at * d;
                    Kept kept = kept_in(memory + b * sample, n, Q);
                    float own_length = votes_back(i, u + at * D * Q, pose, ratio + at * Q, kept, raw, room, n, Q);
                    for (int64_t e = 0; e < d; e++) {
                        int64_t row = (i * d + e) * JD;
                        grad_poses[at * d + e] = dot(raw, weight + row, JD) + pose[e] * own_length;
                        if (grad_weight) add_scaled(grad_weight + row, raw, pose[e], JD);
                    }
                }
        }
    })
}
