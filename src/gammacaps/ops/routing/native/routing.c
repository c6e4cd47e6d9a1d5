/* Routing of a batch on a CPU. A thread takes a few samples at a time and does all that is to be done with them, so that
 * their votes stay in its cache through all iterations, and in the backward pass are cast again rather than fetched.
 *
 * The formulas are those of ../rules.py, their gradient that of ../written_out.py; names and letters are theirs.
 * A capsule's votes are D rows of parents, a row being Q registers: J filled up with zeros, P numbers in all. So sums over
 * entries and over capsules need no shuffling. Weights are arranged likewise, as I d D P.
 */
#define LEAST 1.17549435e-38f /* the least normal float32 */
#define NEAR 1.1920929e-5f    /* 100 roundings: nearer to its parent than this, a vote has no direction from it */
/* The logit of a parent that only fills up. exponential() ends at -87, so that its coupling is up to 1.6e-38 and not 0,
 * which is harmless only because its votes are 0. */
#define NEVER -1e30f
#define CHUNK 4               /* samples that a thread takes at a time, at most */

typedef struct {
    int64_t B, I, J, d, D, r; /* r iterations */
    int sda;                  /* else routing by agreement */
    float scale;              /* b = scale * distance / usual distance */
    int threads;
} Shape;

/* Registers in a row of parents. */
INLINE int64_t rows(const Shape *n) { return (n->J + WIDTH - 1) / WIDTH; }

/* ---- votes ---- */

INLINE float squared_length(const float *pose, int64_t d) {
    float square = 0;
    for (int64_t e = 0; e < d; e++) square += pose[e] * pose[e];
    return square;
}

/* A capsule's votes for N samples, whose poses lie apart by `pose_row` and whose votes by `row`. */
INLINE void times(
    const Register *weight, const float *poses, int64_t pose_row, Register *u, int64_t row, int64_t N, int64_t d, int64_t DQ
) {
    int64_t x = 0;
    for (; x + TILE <= DQ; x += TILE) {
        Register y[4][TILE] = {{{0}}};
        for (int64_t e = 0; e < d; e++) {
            if (N > 1) soon(weight + (d + e) * DQ + x, TILE); /* the next capsule's */
            UPTO(m, N) UPTO(t, TILE) y[m][t] += poses[m * pose_row + e] * weight[e * DQ + x + t];
        }
        UPTO(m, N) UPTO(t, TILE) u[m * row + x + t] = y[m][t];
    }
    for (; x < DQ; x++) {
        Register y[4] = {{0}};
        for (int64_t e = 0; e < d; e++) UPTO(m, N) y[m] += poses[m * pose_row + e] * weight[e * DQ + x];
        UPTO(m, N) u[m * row + x] = y[m];
    }
}

/* Shortens votes to the length of the pose that casts them; ratio is by how much. */
INLINE void bound(Register *u, const float *pose, Register *ratio, int64_t d, int64_t Q, int64_t D) {
    Register most = at_least(all(sqrtf(squared_length(pose, d))), 2 * LEAST);
    dots(u, u, ratio, 1, Q, D);
    EACH(q) ratio[q] = at_most(most / at_least(root(ratio[q]), LEAST), 1);
    for (int64_t e = 0; e < D; e++) EACH(q) u[e * Q + q] *= ratio[q];
}

/* ---- routing ---- */

/* The mean distance of each of N <= 4 capsules to its parents, and never 0. */
INLINE Four usual_distances(const Register *distance, const Shape *n, int64_t N, int64_t Q) {
    Four mean = totals(distance, N, Q) / (float)n->J;
    UPTO(m, N) mean[m] = mean[m] < TINY ? TINY : mean[m];
    return mean;
}

/* The couplings of N capsules, from the parents v of the iteration before; the logits b of RBA are added to. */
INLINE void couple(
    const Register *u, const Register *v, const Register *filling, Register *b, Register *distance, Register *c,
    const Shape *n, int64_t N, int64_t Q, int64_t D
) {
    if (n->sda) {
        distances(u, v, distance, N, Q, D);
        Four factor = n->scale / usual_distances(distance, n, N, Q);
        /* Some parent is no farther than usual: its logit is at least `scale`, so none needs to be subtracted. */
        UPTO(m, N) EACH(q) c[m * Q + q] = exponential(distance[m * Q + q] * factor[m] + filling[q]);
    } else {
        dots(u, v, c, N, Q, D);
        UPTO(m, N) {
            EACH(q) b[m * Q + q] += c[m * Q + q], c[m * Q + q] = b[m * Q + q] + filling[q];
            float most = largest(c + m * Q, Q);
            EACH(q) c[m * Q + q] = exponential(c[m * Q + q] - most);
        }
    }
    Four share = 1 / totals(c, N, Q);
    UPTO(m, N) EACH(q) c[m * Q + q] *= share[m];
}

/* 0 for parents, NEVER for what fills up a row. */
INLINE void fill(Register *filling, int64_t J, int64_t Q) {
    for (int64_t j = 0; j < Q * WIDTH; j++) ((float *)filling)[j] = j < J ? 0 : NEVER;
}

INLINE void write_couplings(const Register *c, float *couplings, int64_t J, int64_t N, int64_t Q) {
    int64_t whole = J / WIDTH;
    UPTO(m, N) {
        for (int64_t q = 0; q < whole; q++) *(Register *)(couplings + m * J + q * WIDTH) = c[m * Q + q];
        for (int64_t j = whole * WIDTH; j < J; j++) couplings[m * J + j] = ((const float *)(c + m * Q))[j];
    }
}

/* s^0: all couplings are 1 / J. */
INLINE void first_sum(const Register *u, Register *s, const Shape *n, int64_t Q, int64_t D) {
    Register even[4 * Q];
    for (int64_t q = 0; q < 4 * Q; q++) even[q] = all(1.0f / n->J);
    int64_t i = 0;
    for (; i + 4 <= n->I; i += 4) add_votes(s, even, u + i * D * Q, 4, Q, D);
    for (; i < n->I; i++) add_votes(s, even, u + i * D * Q, 1, Q, D);
}

/* One iteration for N capsules from i on. */
INLINE void iterate(
    int64_t i, const Register *u, const Register *v, const Register *filling, Register *b, Register *s, float *couplings,
    const Shape *n, int64_t N, int64_t Q, int64_t D
) {
    Register c[N * Q], distance[N * Q];
    couple(u + i * D * Q, v, filling, b + i * Q, distance, c, n, N, Q, D);
    add_votes(s, c, u + i * D * Q, N, Q, D);
    if (couplings) write_couplings(c, couplings + i * n->J, n->J, N, Q);
}

/* One sample's votes to its parents v (J D), with s^k for each iteration. room: I Q + 2 D Q. */
INLINE void route(
    const Register *u, const float *bias, Register *s, float *parents, float *couplings, Register *room, const Shape *n,
    int64_t Q, int64_t D
) {
    int64_t I = n->I, J = n->J, DQ = D * Q;
    Register *b = room, *v = b + I * Q, *start = v + DQ, filling[Q];
    fill(filling, J, Q);
    if (!n->sda) memset(b, 0, I * Q * sizeof(Register));
    memset(start, 0, DQ * sizeof(Register));
    if (bias) to_rows(bias, start, J, Q, D);
    memcpy(s, start, DQ * sizeof(Register));
    first_sum(u, s, n, Q, D);
    for (int64_t j = 0; n->r == 1 && j < I * J; j++) couplings[j] = 1.0f / J;
    for (int64_t k = 1; k < n->r; k++) {
        squash(s, v, Q, D);
        s += DQ;
        memcpy(s, start, DQ * sizeof(Register));
        float *last = k == n->r - 1 ? couplings : 0;
        int64_t i = 0;
        for (; i + 4 <= I; i += 4) iterate(i, u, v, filling, b, s, last, n, 4, Q, D);
        for (; i < I; i++) iterate(i, u, v, filling, b, s, last, n, 1, Q, D);
    }
    squash(s, v, Q, D);
    from_rows(v, parents, J, Q, D);
}

/* ---- and backward ---- */

/* The gradient of N capsules' couplings: from grad at c to a at the distances, divided by them; of RBA at b. */
INLINE void couple_gradient(
    Register *grad, const Register *c, const Register *distance, Register *a, const Shape *n, int64_t N, int64_t Q
) {
    Register part[N * Q];
    UPTO(m, N) EACH(q) part[m * Q + q] = c[m * Q + q] * grad[m * Q + q];
    Four whole = totals(part, N, Q);
    UPTO(m, N) EACH(q) grad[m * Q + q] = c[m * Q + q] * (grad[m * Q + q] - whole[m]);
    if (!n->sda) {
        for (int64_t x = 0; x < N * Q; x++) a[x] += grad[x]; /* logits are added to, and so are their gradients */
        return;
    }
    Four usual = usual_distances(distance, n, N, Q), factor = n->scale / usual;
    UPTO(m, N) EACH(q) part[m * Q + q] = grad[m * Q + q] * distance[m * Q + q];
    Four mean = totals(part, N, Q) / ((float)n->J * usual);
    UPTO(m, N) {
        if (!(usual[m] > TINY)) mean[m] = 0; /* a mean raised to TINY is a constant */
        EACH(q) {
            Register apart = distance[m * Q + q];
            a[m * Q + q] = apart * (grad[m * Q + q] - mean[m]) * factor[m] / at_least(apart * apart, NEAR * NEAR);
        }
    }
}

/* What one sample's backward pass hands from routing to the votes: for each capsule, one after the other in memory, c^k
 * and a^k of k >= 1; v^(k-1) of these; the gradients gs^k at s^k; and for RBA, while they are needed, the logits. */
typedef struct { Register *ca, *v, *gs, *logits; } Kept;

INLINE int64_t kept_size(const Shape *n, int64_t Q, int64_t D) {
    return (2 * (n->r - 1) + !n->sda) * n->I * Q + (2 * n->r - 1) * D * Q;
}

INLINE Kept kept_in(Register *memory, const Shape *n, int64_t Q, int64_t D) {
    int64_t later = n->r - 1, DQ = D * Q;
    Register *v = memory + 2 * later * n->I * Q, *gs = v + later * DQ;
    return (Kept){memory, v, gs, gs + n->r * DQ};
}

/* One iteration backward for N capsules from i on; ca and grad_c are those of the iteration. */
INLINE void iterate_back(
    int64_t i, const Register *u, const Register *v, const Register *gs, const Register *filling, const float *grad_c,
    Register *ca, int has_later, Register *moved, Register *by_parent, const Shape *n, int64_t N, int64_t Q, int64_t D
) {
    int64_t J = n->J, apart = 2 * (n->r - 1) * Q;
    Register grad[N * Q], distance[N * Q], c[N * Q], a[N * Q];
    u += i * D * Q, ca += i * apart;
    dots(u, gs, grad, N, Q, D);
    if (n->sda) couple(u, v, filling, 0, distance, c, n, N, Q, D);
    else
        UPTO(m, N) EACH(q) {
            c[m * Q + q] = ca[m * apart + q];
            a[m * Q + q] = has_later ? ca[m * apart + 3 * Q + q] : all(0);
        }
    UPTO(m, N)
        for (int64_t j = 0; grad_c && j < J; j++) ((float *)(grad + m * Q))[j] += grad_c[(i + m) * J + j];
    couple_gradient(grad, c, distance, a, n, N, Q);
    add_votes(moved, a, u, N, Q, D);
    UPTO(m, N) EACH(q) {
        by_parent[q] += a[m * Q + q];
        ca[m * apart + q] = c[m * Q + q];
        ca[m * apart + Q + q] = a[m * Q + q];
    }
}

/* RBA's logits add up from iteration to iteration, so its couplings are computed before all else. */
INLINE void couple_all(const Register *u, Kept to, const Register *filling, const Shape *n, int64_t Q, int64_t D) {
    Register distance[Q];
    memset(to.logits, 0, n->I * Q * sizeof(Register));
    for (int64_t k = 0; k < n->r - 1; k++)
        for (int64_t i = 0; i < n->I; i++) {
            Register *c = to.ca + 2 * (i * (n->r - 1) + k) * Q;
            couple(u + i * D * Q, to.v + k * D * Q, filling, to.logits + i * Q, distance, c, n, 1, Q, D);
        }
}

/* One sample backward through routing. room: 3 D Q. */
INLINE void route_back(
    const Register *u, const Register *s, const float *grad_v, const float *grad_c, float *grad_bias, Kept to,
    Register *room, const Shape *n, int64_t Q, int64_t D
) {
    int64_t I = n->I, J = n->J, DQ = D * Q, last = n->r - 1;
    Register *gv = room, *moved = gv + DQ, *whole_gs = moved + DQ, by_parent[Q], filling[Q];
    fill(filling, J, Q);
    to_rows(grad_v, gv, J, Q, D);
    memset(whole_gs, 0, DQ * sizeof(Register));
    for (int64_t k = 0; k < last; k++) squash(s + k * DQ, to.v + k * DQ, Q, D);
    if (!n->sda) couple_all(u, to, filling, n, Q, D);
    for (int64_t k = last; k >= 0; k--) {
        Register *gs = to.gs + k * DQ;
        squash_gradient(s + k * DQ, gv, gs, Q, D);
        for (int64_t x = 0; x < DQ; x++) whole_gs[x] += gs[x];
        if (k == 0) break;
        const Register *v = to.v + (k - 1) * DQ;
        Register *ca = to.ca + 2 * (k - 1) * Q;
        memset(moved, 0, DQ * sizeof(Register));
        memset(by_parent, 0, Q * sizeof(Register)); /* the sum over capsules of a */
        const float *at_c = k == last ? grad_c : 0;
        int64_t i = 0;
        for (; i + 4 <= I; i += 4) iterate_back(i, u, v, gs, filling, at_c, ca, k < last, moved, by_parent, n, 4, Q, D);
        for (; i < I; i++) iterate_back(i, u, v, gs, filling, at_c, ca, k < last, moved, by_parent, n, 1, Q, D);
        for (int64_t e = 0; e < D; e++)
            EACH(q) {
                int64_t x = e * Q + q;
                if (n->sda) gv[x] = v[x] * by_parent[q] - moved[x];
                else gv[x] = moved[x];
            }
    }
    from_rows(whole_gs, grad_bias, J, Q, D);
}

/* One capsule's votes u backward: out is the gradient at them before they were shortened. Gives what the capsule's own
 * length gets, as a factor of its pose. */
INLINE float votes_back(
    int64_t i, const Register *u, const float *pose, const Register *ratio, Kept from, Register *out, const Shape *n,
    int64_t Q, int64_t D
) {
    int64_t DQ = D * Q, later = n->r - 1;
    const Register *ca = from.ca + 2 * i * later * Q;
    soon(ca + 2 * later * Q, 2 * later * Q); /* the next capsule's */
    soon(u + DQ, DQ);
    Register with_u[Q], along[Q];
    EACH(q) with_u[q] = all(0);
    for (int64_t k = 0; n->sda && k < later; k++) EACH(q) with_u[q] += ca[(2 * k + 1) * Q + q];
    for (int64_t e = 0; e < D; e++)
        EACH(q) out[e * Q + q] = u[e * Q + q] * with_u[q] + from.gs[e * Q + q] * (1.0f / n->J);
    for (int64_t k = 0; k < later; k++) {
        const Register *c = ca + 2 * k * Q, *a = c + Q;
        const Register *gs = from.gs + (k + 1) * DQ, *v = from.v + k * DQ;
        for (int64_t e = 0; e < D; e++)
            EACH(q) {
                Register part = a[q] * v[e * Q + q];
                if (n->sda) part = -part;
                out[e * Q + q] += c[q] * gs[e * Q + q] + part;
            }
    }
    if (!n->sda) return 0;
    float square = squared_length(pose, n->d);
    square = square < TINY * TINY ? TINY * TINY : square;
    dots(u, out, along, 1, Q, D);
    EACH(q) along[q] = where(ratio[q] < 1, along[q] / square); /* a vote that was shortened has its capsule's length */
    for (int64_t e = 0; e < D; e++) EACH(q) out[e * Q + q] = (out[e * Q + q] - along[q] * u[e * Q + q]) * ratio[q];
    return total(along, Q);
}

/* The gradients of N samples' poses of one capsule from those at its votes, `raw`; own_length is what votes_back gave. */
INLINE void poses_back(
    const Register *raw, const Register *weight, const float *poses, float *grad_poses, int64_t pose_row,
    const float *own_length, int64_t N, int64_t d, int64_t DQ
) {
    int64_t e = 0;
    for (; e + 4 <= d; e += 4) {
        Register y[4][4] = {{{0}}};
        for (int64_t x = 0; x < DQ; x++) {
            if (N > 1) UPTO(t, 4) soon(weight + (d + e + t) * DQ + x, 1); /* the next capsule's */
            UPTO(t, 4) UPTO(m, N) y[m][t] += raw[m * DQ + x] * weight[(e + t) * DQ + x];
        }
        UPTO(m, N) {
            int64_t at = m * pose_row + e;
            *(Four *)(grad_poses + at) = sums(y[m][0], y[m][1], y[m][2], y[m][3]) + *(const Four *)(poses + at) * own_length[m];
        }
    }
    for (; e < d; e++)
        UPTO(m, N) {
            int64_t at = m * pose_row + e;
            Register y = all(0);
            for (int64_t x = 0; x < DQ; x++) y += raw[m * DQ + x] * weight[e * DQ + x];
            grad_poses[at] = sum(y) + poses[at] * own_length[m];
        }
}

/* What N samples add to the gradient of a capsule's weight. */
INLINE void weight_back(
    const Register *raw, const float *poses, int64_t pose_row, Register *grad_weight, int64_t N, int64_t d, int64_t DQ
) {
    for (int64_t e = 0; e < d; e++)
        for (int64_t x = 0; x < DQ; x++) {
            Register y = grad_weight[e * DQ + x];
            UPTO(m, N) y += poses[m * pose_row + e] * raw[m * DQ + x];
            grad_weight[e * DQ + x] = y;
        }
}

/* ---- some samples, some capsules ---- */

typedef struct {
    const float *poses, *bias;                   /* B I d, J D or null */
    const Register *weight;                      /* I d D Q */
    Register *sums;                              /* B r D Q: s^k */
    float *v, *couplings;                        /* B J D, B I J: of the last iteration */
    const float *grad_v, *grad_c;                /* B J D, B I J or null */
    float *grad_poses, *grad_weight, *grad_bias; /* B I d, I d J D or null, B J D */
    const Shape *n;
} Data;

/* Memory for some samples: their votes and ratios, of `capsules` capsules, and what their backward pass keeps. */
typedef struct { Register *u, *ratio, *kept; int64_t capsules; } Room;

/* Samples from b on to `until`, capsules from i on to `end`. */
typedef struct { int64_t b, until, i, end; } Some;

/* A function with Q and D at its end, compiled anew for those that are common, so that registers hold whole rows. */
#define FOR_SIZES(function, ...)                                                                                       \
    int64_t Q = rows(n), D = n->D;                                                                                     \
    if (Q == 1 && D == 8) function(__VA_ARGS__, 1, 8);                                                                 \
    else if (Q == 2 && D == 8) function(__VA_ARGS__, 2, 8);                                                            \
    else function(__VA_ARGS__, Q, D);

/* Votes of the capsules of `some` for its samples; those of capsule i come first in the room. */
INLINE void cast_of(const Data *x, Some some, Room to, int64_t Q, int64_t D) {
    const Shape *n = x->n;
    int64_t I = n->I, d = n->d, DQ = D * Q, row = to.capsules * DQ;
    for (int64_t i = some.i; i < some.end; i++) {
        const Register *weight = x->weight + i * d * DQ;
        const float *pose = x->poses + (some.b * I + i) * d;
        int64_t at = i - some.i;
        for (int64_t left = some.until - some.b; left > 0; ) {
            int64_t N = left >= 4 ? 4 : 1;
            if (N == 4) times(weight, pose, I * d, to.u + at * DQ, row, 4, d, DQ);
            else times(weight, pose, I * d, to.u + at * DQ, row, 1, d, DQ);
            for (int64_t m = 0; m < N && n->sda; m++, at += to.capsules, pose += I * d)
                bound(to.u + at * DQ, pose, to.ratio + at * Q, d, Q, D);
            if (!n->sda) at += N * to.capsules, pose += N * I * d;
            left -= N;
        }
    }
}

INLINE void route_of(const Data *x, int64_t b, const Register *u, Register *room, int64_t Q, int64_t D) {
    const Shape *n = x->n;
    int64_t JD = n->J * D;
    route(u, x->bias, x->sums + b * n->r * D * Q, x->v + b * JD, x->couplings + b * n->I * n->J, room, n, Q, D);
}

INLINE void route_back_of(const Data *x, int64_t b, const Register *u, Register *kept, Register *room, int64_t Q, int64_t D) {
    const Shape *n = x->n;
    int64_t JD = n->J * D;
    route_back(u, x->sums + b * n->r * D * Q, x->grad_v + b * JD, x->grad_c ? x->grad_c + b * n->I * n->J : 0,
               x->grad_bias + b * JD, kept_in(kept, n, Q, D), room, n, Q, D);
}

/* N samples from b on: the gradients of one capsule's poses and, where asked for, what its weight's gains. */
INLINE void capsule_back(
    const Data *x, int64_t b, int64_t i, Room from, int64_t at, Register *raw, Register *grad_weight, int64_t N, int64_t Q,
    int64_t D
) {
    const Shape *n = x->n;
    int64_t I = n->I, d = n->d, DQ = D * Q, size = kept_size(n, Q, D), pose = (b * I + i) * d;
    float own_length[4];
    for (int64_t m = 0; m < N; m++, at += from.capsules)
        own_length[m] = votes_back(i, from.u + at * DQ, x->poses + pose + m * I * d, from.ratio + at * Q,
                                   kept_in(from.kept + m * size, n, Q, D), raw + m * DQ, n, Q, D);
    poses_back(raw, x->weight + i * d * DQ, x->poses + pose, x->grad_poses + pose, I * d, own_length, N, d, DQ);
    if (grad_weight) weight_back(raw, x->poses + pose, I * d, grad_weight, N, d, DQ);
}

/* The same for all samples and capsules of `some`. room: CHUNK D Q. */
INLINE void back_of(const Data *x, Some some, Room from, Register *grad_weight, Register *room, int64_t Q, int64_t D) {
    int64_t size = kept_size(x->n, Q, D);
    for (int64_t i = some.i; i < some.end; i++) {
        Room now = from;
        for (int64_t b = some.b; b < some.until; ) {
            int64_t at = (b - some.b) * from.capsules + i - some.i;
            now.kept = from.kept + (b - some.b) * size;
            if (some.until - b >= 4) capsule_back(x, b, i, now, at, room, grad_weight, 4, Q, D), b += 4;
            else capsule_back(x, b, i, now, at, room, grad_weight, 1, Q, D), b += 1;
        }
    }
}

static void cast_some(const Data *x, Some some, Room to) {
    const Shape *n = x->n;
    FOR_SIZES(cast_of, x, some, to)
}
static void route_one(const Data *x, int64_t b, const Register *u, Register *room) {
    const Shape *n = x->n;
    FOR_SIZES(route_of, x, b, u, room)
}
static void route_one_back(const Data *x, int64_t b, const Register *u, Register *kept, Register *room) {
    const Shape *n = x->n;
    FOR_SIZES(route_back_of, x, b, u, kept, room)
}
static void back_some(const Data *x, Some some, Room from, Register *grad_weight, Register *room) {
    const Shape *n = x->n;
    FOR_SIZES(back_of, x, some, from, grad_weight, room)
}

/* The whole gradient of one capsule, whose votes are cast anew; kept is that of all samples. */
static void learn_capsule(const Data *x, int64_t i, Register *kept, Room room, Register *raw, Register *grad_weight) {
    const Shape *n = x->n;
    int64_t Q = rows(n), D = n->D, DQ = D * Q;
    memset(grad_weight, 0, n->d * DQ * sizeof(Register));
    for (int64_t b = 0; b < n->B; b += CHUNK) {
        Some some = {b, b + CHUNK < n->B ? b + CHUNK : n->B, i, i + 1};
        for (int64_t m = b; m < some.until; m++)
            soon(kept + m * kept_size(n, Q, D) + 2 * i * (n->r - 1) * Q, 2 * (n->r - 1) * Q);
        cast_some(x, some, room);
        room.kept = kept + b * kept_size(n, Q, D);
        back_some(x, some, room, grad_weight, raw);
    }
    for (int64_t e = 0; e < n->d; e++)
        from_rows(grad_weight + e * DQ, x->grad_weight + (i * n->d + e) * n->J * D, n->J, Q, D);
}

/* ---- batches: each gives 1 where there is no memory for it ---- */

static Register *memory(int64_t registers) {
    return aligned_alloc(64, (registers * sizeof(Register) + 63) / 64 * 64);
}

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }

/* The room of `samples` samples and what else a thread needs, in one piece of memory that begins at `u`. */
static Room room_for(int64_t samples, int64_t capsules, int64_t kept, int64_t more, const Shape *n) {
    int64_t Q = rows(n), votes = samples * capsules * n->D * Q, ratios = samples * capsules * Q;
    Register *start = memory(votes + ratios + kept + more);
    return (Room){start, start + votes, start + votes + ratios, capsules};
}

int width(void) { return WIDTH; }

/* weight (I d J D) to arranged (I d D P) */
void arrange(const float *weight, float *arranged, const Shape *n) {
    int64_t Q = rows(n), JD = n->J * n->D, DP = n->D * Q * WIDTH;
    _Pragma("omp parallel for num_threads(n->threads)") for (int64_t x = 0; x < n->I * n->d; x++)
        to_rows(weight + x * JD, (Register *)(arranged + x * DP), n->J, Q, n->D);
}

int forward(
    const float *poses, const Register *weight, const float *bias, Register *sums, float *v, float *couplings,
    const Shape *n
) {
    Data x = {.poses = poses, .weight = weight, .bias = bias, .sums = sums, .v = v, .couplings = couplings, .n = n};
    int64_t B = n->B, I = n->I, Q = rows(n), DQ = n->D * Q, chunk = least(CHUNK, (B + n->threads - 1) / n->threads);
    int failed = 0;
    _Pragma("omp parallel num_threads(n->threads) reduction(|: failed)") {
        Room room = room_for(chunk, I, 0, I * Q + 2 * DQ, n);
        failed |= !room.u;
        _Pragma("omp for schedule(dynamic)") for (int64_t b = 0; b < B; b += chunk) {
            Some some = {b, least(b + chunk, B), 0, I};
            if (room.u) cast_some(&x, some, room);
            for (int64_t m = 0; room.u && m < some.until - b; m++)
                route_one(&x, b + m, room.u + m * I * DQ, room.kept);
        }
        free(room.u);
    }
    return failed;
}

int backward(
    const float *poses, const Register *weight, Register *sums, const float *grad_v, const float *grad_c,
    float *grad_poses, float *grad_weight, float *grad_bias, const Shape *n
) {
    Data x = {.poses = poses, .weight = weight, .sums = sums, .grad_v = grad_v, .grad_c = grad_c,
              .grad_poses = grad_poses, .grad_weight = grad_weight, .grad_bias = grad_bias, .n = n};
    int64_t B = n->B, I = n->I, D = n->D, Q = rows(n), DQ = D * Q, size = kept_size(n, Q, D);
    int64_t chunk = least(CHUNK, (B + n->threads - 1) / n->threads);
    Register *kept = grad_weight ? memory(B * size) : 0;
    int failed = grad_weight && !kept;
    _Pragma("omp parallel num_threads(n->threads) reduction(|: failed)") {
        Room room = room_for(chunk, I, kept ? 0 : chunk * size, (CHUNK + 3 + n->d) * DQ, n);
        Register *rest = room.kept + (kept ? 0 : chunk * size);
        failed |= !room.u;
        _Pragma("omp for schedule(dynamic)") for (int64_t b = 0; b < B; b += chunk) {
            Some some = {b, least(b + chunk, B), 0, I};
            if (failed) continue;
            cast_some(&x, some, room);
            for (int64_t m = 0; m < some.until - b; m++)
                route_one_back(&x, b + m, room.u + m * I * DQ, kept ? kept + (b + m) * size : room.kept + m * size, rest);
            if (!kept) back_some(&x, some, room, 0, rest);
        }
        free(room.u);
        if (kept) {
            room = room_for(CHUNK, 1, 0, (CHUNK + n->d) * DQ, n);
            failed |= !room.u;
            _Pragma("omp for schedule(dynamic)") for (int64_t i = 0; i < I; i++)
                if (!failed) learn_capsule(&x, i, kept, room, room.kept, room.kept + CHUNK * DQ);
            free(room.u);
        }
    }
    free(kept);
    return failed;
}
