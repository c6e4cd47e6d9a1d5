/* Routing of one batch on a CPU, sample by sample, so that a sample's votes stay in the cache through all iterations.
 *
 * The formulas are those of ../reference.py, their gradient that of ../adjoint.py; names and letters are theirs. For
 * sample b the votes u_ij lie at u + (i B + b) J D, entry D running fastest; everything else is sample after sample.
 * Compiled with associative sums, so that loops over entries and parents become vector instructions.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TINY 1e-12f /* as in reference.py */
#define LEAST 1.17549435e-38f /* the least normal float32 */
#define NEAR 1.1920929e-5f /* 100 roundings: nearer to its parent than this, a vote has no direction from it */
#define INLINE static inline __attribute__((always_inline))

typedef struct {
    int64_t B, I, J, d, D, r; /* r iterations */
    int sda; /* else routing by agreement */
    float scale; /* b = scale * distance / usual distance */
    int threads;
} Shape;

/* exp(x) to 2 roundings for x <= 0, in operations that vectorise. */
INLINE float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    float n = rintf(x * 1.44269504f);
    float y = (x - n * 0.693145752f) - n * 1.42860677e-6f;
    float p = 1.3888889e-3f;
    p = p * y + 8.3333333e-3f;
    p = p * y + 4.1666667e-2f;
    p = p * y + 1.6666667e-1f;
    p = p * y + 0.5f;
    p = p * y + 1.0f;
    p = p * y + 1.0f;
    union { int32_t bits; float value; } power = {((int32_t)n + 127) << 23};
    return p * power.value;
}

INLINE float dot(const float *a, const float *b, int64_t D) {
    float sum = 0;
    for (int64_t e = 0; e < D; e++) sum += a[e] * b[e];
    return sum;
}

INLINE float distance(const float *a, const float *b, int64_t D) {
    float sum = 0;
    for (int64_t e = 0; e < D; e++) sum += (a[e] - b[e]) * (a[e] - b[e]);
    return sqrtf(sum);
}

/* c = softmax(b) over the J parents of one capsule. */
INLINE void softmax(const float *b, float *c, int64_t J) {
    float most = b[0], sum = 0;
    for (int64_t j = 1; j < J; j++) most = b[j] > most ? b[j] : most;
    for (int64_t j = 0; j < J; j++) c[j] = exponential(b[j] - most);
    for (int64_t j = 0; j < J; j++) sum += c[j];
    float share = 1 / sum;
    for (int64_t j = 0; j < J; j++) c[j] *= share;
}

/* The mean distance of one capsule to its parents, and never 0. */
INLINE float usual_distance(const float *dist, int64_t J) {
    float sum = 0;
    for (int64_t j = 0; j < J; j++) sum += dist[j];
    float mean = sum / J;
    return mean > TINY || mean != mean ? mean : TINY;
}

/* v = squash(s), for all parents. */
INLINE void squash(const float *s, float *v, int64_t J, int64_t D) {
    for (int64_t j = 0; j < J; j++) {
        float norm = sqrtf(dot(s + j * D, s + j * D, D));
        float factor = norm / (1 + norm * norm);
        for (int64_t e = 0; e < D; e++) v[j * D + e] = factor * s[j * D + e];
    }
}

/* The gradient at s of squash(s). */
INLINE void squash_gradient(const float *s, const float *grad, float *out, int64_t J, int64_t D) {
    for (int64_t j = 0; j < J; j++) {
        const float *sj = s + j * D, *gj = grad + j * D;
        float norm = sqrtf(dot(sj, sj, D)), whole = 1 + norm * norm;
        float along = dot(sj, gj, D) / (norm > TINY ? norm : TINY);
        float first = norm / whole, second = along * (1 - norm * norm) / (whole * whole);
        for (int64_t e = 0; e < D; e++) out[j * D + e] = gj[e] * first + sj[e] * second;
    }
}

/* Shortens each vote to the length of the capsule that casts it; ratio is by how much. */
INLINE void bound(float *u, const float *pose, float *ratio, int64_t J, int64_t d, int64_t D) {
    float most = sqrtf(dot(pose, pose, d));
    most = most > 2 * LEAST ? most : 2 * LEAST;
    for (int64_t j = 0; j < J; j++) {
        float size = sqrtf(dot(u + j * D, u + j * D, D));
        float part = most / (size > LEAST ? size : LEAST);
        ratio[j] = part < 1 ? part : 1;
    }
    for (int64_t j = 0; j < J; j++)
        for (int64_t e = 0; e < D; e++) u[j * D + e] *= ratio[j];
}

/* The couplings of iteration k of one capsule, from the parents v of the iteration before; for RBA b is added to. */
INLINE void couple(const float *u, const float *v, float *b, float *dist, float *c, const Shape *n, int64_t D) {
    int64_t J = n->J;
    if (n->sda) {
        for (int64_t j = 0; j < J; j++) dist[j] = distance(u + j * D, v + j * D, D);
        float factor = n->scale / usual_distance(dist, J);
        for (int64_t j = 0; j < J; j++) b[j] = dist[j] * factor;
    } else {
        for (int64_t j = 0; j < J; j++) b[j] += dot(u + j * D, v + j * D, D);
    }
    softmax(b, c, J);
}

INLINE void add_votes(float *s, const float *c, const float *u, int64_t J, int64_t D) {
    for (int64_t j = 0; j < J; j++)
        for (int64_t e = 0; e < D; e++) s[j * D + e] += c[j] * u[j * D + e];
}

/* One sample forward. room: J (b of every capsule for RBA: I J) + J + J D. */
INLINE void forward_one(
    float *u, const float *poses, const float *bias, float *ratio, float *sums, float *couplings, float *room,
    const Shape *n, int64_t D
) {
    int64_t I = n->I, J = n->J, row = n->B * J * D;
    float *b = room, *dist = b + I * J, *v = dist + J;
    memset(b, 0, I * J * sizeof(float));
    for (int64_t k = 0; k < n->r; k++) {
        float *s = sums + k * n->B * J * D;
        for (int64_t x = 0; x < J * D; x++) s[x] = 0;
        for (int64_t i = 0; i < I; i++) {
            float *ui = u + i * row, *c = couplings + i * J;
            if (k == 0) {
                if (n->sda) bound(ui, poses + i * n->d, ratio + i * J, J, n->d, D);
                for (int64_t j = 0; j < J; j++) c[j] = 1.0f / J;
            } else {
                couple(ui, v, b + i * J, dist, c, n, D);
            }
            add_votes(s, c, ui, J, D);
        }
        if (bias)
            for (int64_t x = 0; x < J * D; x++) s[x] += bias[x];
        squash(s, v, J, D);
    }
    memcpy(sums + n->r * n->B * J * D, v, J * D * sizeof(float));
}

/* The gradient of one capsule's couplings c at the distances (divided by them) or, for RBA, at the logits.
 * grad: at c; both J long. */
INLINE void couple_gradient(float *grad, const float *c, const float *dist, float *a, const Shape *n) {
    int64_t J = n->J;
    float sum = 0;
    for (int64_t j = 0; j < J; j++) sum += c[j] * grad[j];
    for (int64_t j = 0; j < J; j++) grad[j] = c[j] * (grad[j] - sum);
    if (!n->sda) {
        for (int64_t j = 0; j < J; j++) a[j] += grad[j]; /* logits are added to, and so are their gradients */
        return;
    }
    float usual = usual_distance(dist, J), mean = 0;
    for (int64_t j = 0; j < J; j++) mean += grad[j] * dist[j];
    mean = usual > TINY ? mean / J / usual : 0; /* a mean raised to TINY is a constant */
    float factor = n->scale / usual;
    for (int64_t j = 0; j < J; j++) {
        float square = dist[j] * dist[j];
        square = square > NEAR * NEAR ? square : NEAR * NEAR;
        a[j] = dist[j] * (grad[j] - mean) * factor / square;
    }
}

/* One sample backward: u becomes the gradient at the raw votes, grad_poses the part through the votes' bound.
 * room: (2 r + 1) I J + (2 r + 3) J D + 2 J. */
INLINE void backward_one(
    float *u, const float *poses, const float *ratio, const float *sums, const float *grad_v, const float *grad_c,
    float *grad_bias, float *grad_poses, float *room, const Shape *n, int64_t D
) {
    int64_t I = n->I, J = n->J, r = n->r, row = n->B * J * D, JD = J * D;
    float *c = room, *a = c + r * I * J, *radial = a + r * I * J; /* c^k and a^k of k >= 1; r I J, r I J, I J */
    float *v = radial + I * J, *gs = v + r * JD, *gv = gs + r * JD, *moved = gv + JD, *spare = moved + JD;
    float *dist = spare + JD, *grad = dist + J;
    memset(radial, 0, I * J * sizeof(float));
    memset(a, 0, r * I * J * sizeof(float));
    memset(grad_bias, 0, JD * sizeof(float));
    for (int64_t k = 0; k < r; k++) squash(sums + k * n->B * JD, v + k * JD, J, D);
    /* The couplings again: cheaper than to store and read them. b of RBA is kept in `radial` until it is done. */
    for (int64_t k = 1; k < r; k++)
        for (int64_t i = 0; i < I; i++)
            couple(u + i * row, v + (k - 1) * JD, radial + i * J, dist, c + (k * I + i) * J, n, D);
    memset(radial, 0, I * J * sizeof(float));
    memcpy(gv, grad_v, JD * sizeof(float));
    for (int64_t k = r - 1; k > 0; k--) {
        float *gsk = gs + k * JD;
        const float *before = v + (k - 1) * JD;
        squash_gradient(sums + k * n->B * JD, gv, gsk, J, D);
        for (int64_t x = 0; x < JD; x++) grad_bias[x] += gsk[x], moved[x] = 0;
        for (int64_t j = 0; j < J; j++) spare[j] = 0; /* sum over i of a_ij */
        for (int64_t i = 0; i < I; i++) {
            const float *ui = u + i * row, *ck = c + (k * I + i) * J;
            float *ak = a + (k * I + i) * J, *along = radial + i * J;
            for (int64_t j = 0; j < J; j++) grad[j] = dot(ui + j * D, gsk + j * D, D);
            if (n->sda) {
                for (int64_t j = 0; j < J; j++) along[j] += ck[j] * grad[j];
                for (int64_t j = 0; j < J; j++) dist[j] = distance(ui + j * D, before + j * D, D);
            } else if (k < r - 1) {
                memcpy(ak, a + ((k + 1) * I + i) * J, J * sizeof(float));
            }
            if (grad_c && k == r - 1)
                for (int64_t j = 0; j < J; j++) grad[j] += grad_c[i * J + j];
            couple_gradient(grad, ck, dist, ak, n);
            if (n->sda)
                for (int64_t j = 0; j < J; j++) {
                    along[j] -= ak[j] * dot(ui + j * D, before + j * D, D);
                    spare[j] += ak[j];
                }
            add_votes(moved, ak, ui, J, D);
        }
        for (int64_t j = 0; j < J; j++)
            for (int64_t e = 0; e < D; e++) {
                int64_t x = j * D + e;
                gv[x] = n->sda ? before[x] * spare[j] - moved[x] : moved[x];
            }
    }
    squash_gradient(sums, gv, gs, J, D);
    for (int64_t x = 0; x < JD; x++) grad_bias[x] += gs[x];
    for (int64_t i = 0; i < I; i++) {
        float *ui = u + i * row;
        const float *part = ratio + i * J;
        float most = sqrtf(dot(poses + i * n->d, poses + i * n->d, n->d)), all = 0;
        most = most > TINY ? most : TINY;
        for (int64_t j = 0; j < J; j++) {
            float *uj = ui + j * D;
            float own = 0, along = 0, by_u = 0;
            float factor = n->sda ? part[j] : 1;
            if (n->sda) {
                for (int64_t k = 1; k < r; k++) own += a[(k * I + i) * J + j];
                along = radial[i * J + j] + dot(uj, gs + j * D, D) / J;
                along = part[j] < 1 ? along / (most * most) + own : 0;
                all += along;
                by_u = (own - along) * factor;
            }
            for (int64_t e = 0; e < D; e++) uj[e] = uj[e] * by_u + factor / J * gs[j * D + e];
            for (int64_t k = 1; k < r; k++) {
                float with_gs = factor * c[(k * I + i) * J + j], with_v = factor * a[(k * I + i) * J + j];
                if (n->sda) with_v = -with_v;
                const float *g = gs + k * JD + j * D, *w = v + (k - 1) * JD + j * D;
                for (int64_t e = 0; e < D; e++) uj[e] += with_gs * g[e] + with_v * w[e];
            }
        }
        for (int64_t e = 0; e < n->d; e++) grad_poses[i * n->d + e] = n->sda ? poses[i * n->d + e] * all : 0;
    }
}

/* A loop over samples for each common D, so that loops over entries are unrolled. Gives 0, or 1 without memory. */
#define EACH_SAMPLE(room_size, call)                                                                                   \
    int failed = 0;                                                                                                    \
    _Pragma("omp parallel num_threads(n->threads) reduction(|: failed)") {                                             \
        float *room = malloc((size_t)(room_size) * sizeof(float));                                                     \
        failed |= !room;                                                                                               \
        _Pragma("omp for schedule(static)") for (int64_t b = 0; b < n->B; b++) {                                       \
            if (!room) continue;                                                                                       \
            if (n->D == 8) { enum { D = 8 }; call; }                                                                   \
            else if (n->D == 16) { enum { D = 16 }; call; }                                                            \
            else { const int64_t D = n->D; call; }                                                                     \
        }                                                                                                              \
        free(room);                                                                                                    \
    }                                                                                                                  \
    return failed;

/* u (I B J D): raw votes in, bounded votes out; ratio (B I J) for SDA; sums (r + 1, B J D): s^k, then v; couplings
 * (B I J) of the last iteration. */
int forward(
    float *u, const float *poses, const float *bias, float *ratio, float *sums, float *couplings, const Shape *n
) {
    int64_t IJ = n->I * n->J, JD = n->J * n->D, Id = n->I * n->d;
    EACH_SAMPLE(
        IJ + n->J + JD, forward_one(u + b * JD, poses + b * Id, bias, ratio + b * IJ, sums + b * JD,
                                    couplings + b * IJ, room, n, D))
}

/* u (I B J D): bounded votes in, gradient at the raw votes out; grad_c (B I J) or null; grad_bias (B J D). */
int backward(
    float *u, const float *poses, const float *ratio, const float *sums, const float *grad_v, const float *grad_c,
    float *grad_bias, float *grad_poses, const Shape *n
) {
    int64_t IJ = n->I * n->J, JD = n->J * n->D, Id = n->I * n->d;
    EACH_SAMPLE(
        (2 * n->r + 1) * IJ + (2 * n->r + 3) * JD + 2 * n->J,
        backward_one(u + b * JD, poses + b * Id, ratio + b * IJ, sums + b * JD, grad_v + b * JD,
                     grad_c ? grad_c + b * IJ : 0, grad_bias + b * JD, grad_poses + b * Id, room, n, D))
}
