/* How few of many weighted children are chosen. Its readable twin is ../columns/thinning.py. */
#ifndef COUNTLESS_THINNING_H
#define COUNTLESS_THINNING_H

#include <math.h>

#include "arithmetic.h"
#include "model.h"

FAST static void sizes_of(int count, const double *mass, double power, double *sizes) {
    if (power == 0.75) {
        for (int i = 0; i < count; i++) sizes[i] = sqrt(mass[i]) * sqrt(sqrt(mass[i]));
    } else if (power == 1.0) {
        memcpy(sizes, mass, count * sizeof(double));
    } else {
        for (int i = 0; i < count; i++) sizes[i] = pow(mass[i], power);
    }
}

/* How many sizes are at least c, and what the others add up to; in several sums at a time, always the same ones. */
FAST static int certain_of(int count, const double *sizes, double c, double *rest) {
    double sums[LANES] = {0}, above[LANES] = {0};
    int i = 0;
    for (; i + LANES <= count; i += LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            double size = sizes[i + lane];
            sums[lane] += size >= c ? 0.0 : size;
            above[lane] += size >= c ? 1.0 : 0.0;
        }
    }
    for (int lane = 0; i < count; i++, lane++) {
        sums[lane] += sizes[i] >= c ? 0.0 : sizes[i];
        above[lane] += sizes[i] >= c ? 1.0 : 0.0;
    }
    double total = 0;
    *rest = 0;
    for (int lane = 0; lane < LANES; lane++) {
        *rest += sums[lane];
        total += above[lane];
    }
    return (int)total;
}

/* The c for which min(1, size / c) add up to `keep` (thinning.py says why), by making ever more of them certain. */
static double threshold(const double *sizes, int count, int keep) {
    double c = INFINITY, rest;
    for (int certain = -1;;) {
        int above = certain_of(count, sizes, c, &rest);
        if (above == certain || above >= keep) return c;
        certain = above;
        c = rest / (keep - above);
    }
}

/* The same of rows of floats, `stride` wide, a multiple of LANES; zeros are no items, and fewer others than `keep` are
 * all certain. */
FAST static double float_threshold(const float *sizes, int rows, int stride, int keep) {
    double c = INFINITY;
    for (int64_t certain = -1;;) {
        double rest = 0;
        int64_t above = 0;
        for (int r = 0; r < rows; r++) {
            const float *row = sizes + (size_t)r * stride;
            vec low = {0};
            ivec over = {0};
            for (int v = 0; v < stride; v += LANES) {
                vec size = load(row + v);
                ivec is_over = size >= (float)c;
                low += (vec)((ivec)size & ~is_over);
                over -= is_over;
            }
            for (int lane = 0; lane < LANES; lane++) {
                rest += low[lane];
                above += over[lane];
            }
        }
        if (above == certain || above >= keep || rest == 0) return c;
        certain = above;
        c = rest / (double)(keep - above);
    }
}

/* Sizes of the same label are divided by the root of their sum, so that light labels keep particles too. */
static int even_out(Workspace *space, int count, int labels, double *sizes) {
    const int32_t *label = space->child_label.data;
    double *strata = reserve(&space->strata, (size_t)labels * sizeof(double));
    if (!strata) return 0;
    memset(strata, 0, labels * sizeof(double));
    for (int i = 0; i < count; i++) strata[label[i]] += sizes[i];
    for (int l = 0; l < labels; l++) strata[l] = strata[l] > 0 ? 1.0 / sqrt(strata[l]) : 0.0;
    for (int i = 0; i < count; i++) sizes[i] *= strata[label[i]];
    return 1;
}

/* An order of `count` items in which neighbours are far apart (thinning.py says why): each k up to the mask is mapped to
 * another number, and those that are no item's are skipped. */
typedef struct {
    uint32_t mask, shift, start;
} Scatter;

static Scatter scatter_of(int count, double offset) {
    uint32_t bits = 1;
    while (bits < 31 && (1u << bits) < (uint32_t)count) bits++;
    return (Scatter){(1u << bits) - 1, (bits + 1) / 2, (uint32_t)(offset * 4294967296.0)};
}

static uint32_t scattered(Scatter s, uint32_t k) {
    k = (k * 2654435761u + s.start) & s.mask;
    k ^= k >> s.shift;
    k = k * 2246822507u & s.mask;
    return k ^ k >> s.shift;
}

/* Choose about `keep` of the children without bias: masses change and the chosen move to the front. If they are to be
 * scattered, `kept` has room for a mark of each, else it is NULL. */
static int thin(Workspace *space, int count, int keep, double power, double offset, const double *hint, int labels,
                uint8_t *kept) {
    double *mass = space->child_mass.data;
    int32_t *parent = space->child_parent.data, *symbol = space->child_symbol.data;
    int32_t *label = labels ? space->child_label.data : NULL;
    double *sizes = reserve(&space->child_size, (size_t)count * sizeof(double));
    if (!sizes) return -1;
    sizes_of(count, mass, power, sizes);
    for (int i = 0; hint && i < count; i++) sizes[i] *= hint[symbol[i]];
    if (labels && !even_out(space, count, labels, sizes)) return -1;
    double c = threshold(sizes, count, keep), scale = 1.0 / c, edge = -offset, next = 0.0;
    int chosen = 0;
    for (int i = 0; !kept && i < count; i++) {
        double inclusion = sizes[i] >= c ? 1.0 : sizes[i] * scale;
        edge += inclusion;
        if (edge < next) continue; /* no point falls into this child */
        mass[chosen] = mass[i] / inclusion;
        parent[chosen] = parent[i];
        if (label) label[chosen] = label[i];
        symbol[chosen++] = symbol[i];
        next += 1.0;
    }
    Scatter scatter = scatter_of(count, offset);
    for (uint32_t k = 0; kept && k <= scatter.mask; k++) { /* the same, in a scattered order */
        uint32_t i = scattered(scatter, k);
        if (i >= (uint32_t)count) continue;
        edge += sizes[i] >= c ? 1.0 : sizes[i] * scale;
        kept[i] = edge >= next;
        next += kept[i];
    }
    for (int i = 0; kept && i < count; i++) {
        if (!kept[i]) continue;
        mass[chosen] = mass[i] / (sizes[i] >= c ? 1.0 : sizes[i] * scale);
        parent[chosen] = parent[i];
        if (label) label[chosen] = label[i];
        symbol[chosen++] = symbol[i];
    }
    return chosen;
}

/* ---- of rows of chances, which are not listed ---- */

/* How much each symbol counts beside its chance: its weight to the power, times its hint. */
static void factors_of(int size, int stride, const double *weights, double power, const double *hint, float *factors) {
    memset(factors, 0, stride * sizeof(float));
    for (int v = 0; v <= size; v++) {
        double weight = weights[v] == 1.0 || weights[v] == 0.0 ? weights[v] : pow(weights[v], power);
        factors[v] = (float)(hint ? weight * hint[v] : weight);
    }
}

/* sizes = scale * factors * chances ** power */
FAST static void row_sizes(int width, double power, float scale, const float *factors, const float *chances,
                           float *sizes) {
    if (power == 0.75) {
        for (int v = 0; v < width; v++) {
            float root = sqrtf(chances[v]);
            sizes[v] = scale * factors[v] * (root * sqrtf(root));
        }
    } else if (power == 1.0) {
        for (int v = 0; v < width; v++) sizes[v] = scale * factors[v] * chances[v];
    } else {
        for (int v = 0; v < width; v++) sizes[v] = scale * factors[v] * powf(chances[v], (float)power);
    }
}

FAST static double row_sum(int width, const float *sizes) {
    vec sums = {0};
    double total = 0;
    for (int v = 0; v < width; v += LANES) sums += load(sizes + v);
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    return total;
}

FAST static void scale_row(int width, float scale, float *sizes) {
    for (int v = 0; v < width; v++) sizes[v] *= scale;
}

/* Sums of blocks of LANES inclusion probabilities, min(1, size / c). */
FAST static void block_sums(int blocks, const float *sizes, float scale, double *sums) {
    for (int b = 0; b < blocks; b++, sizes += LANES) {
        vec v = load(sizes) * scale;
        const vec one = v * 0.0f + 1.0f;
        v = (vec)(((ivec)v & (v < one)) | ((ivec)one & ~(v < one)));
        double total = 0;
        for (int lane = 0; lane < LANES; lane++) total += v[lane];
        sums[b] = total;
    }
}

#endif
