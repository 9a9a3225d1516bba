/* The particle walk of a ResMADE. Its readable twin is ../particles.py on the NumPy runtime of ../resmade.py.
 *
 * A call walks a forest of questions at once. Nodes are steps (a position, and how its filter reads it), listed in
 * depth-first order with their depth; questions that begin with the same steps share the nodes of those steps. The
 * particles of depth d stand at level d. A level holds only the units that became known there, [low, done): earlier
 * units are those of its particles' ancestors, so nothing is copied when particles branch, and what an ancestor adds
 * to a sum is computed once for all its descendants.
 *
 * Every sum runs over units in ascending order whatever the number of particles, so a question's answer does not
 * depend on the others in the forest.
 */
#ifndef COUNTLESS_WALK_H
#define COUNTLESS_WALK_H

#include <math.h>

#include "arithmetic.h"
#include "model.h"

/* ---- levels ---- */

static const int32_t NOBODY[1] = {0};

static float *units_of(const Level *level, int layer) {
    return (float *)level->units.data + (size_t)layer * level->count * level->width;
}

/* What the units [0, cut) of `layer` add up to in `columns` columns from `w` on, for every particle of level `depth`.
 * Each ancestor's share is computed once. Returns the sums, `columns` padded wide. */
static float *ancestral_product(const Model *model, Workspace *space, int depth, int cut, int layer, int columns,
                                const float *w, int w_stride, const float *bias) {
    int width = padded(columns);
    const float *init = bias;
    int init_stride = 0;
    for (int d = 0; d <= depth; d++) {
        const Level *level = &space->level[d];
        float *out = reserve(&space->sums[d % 2], (size_t)level->count * width * sizeof(float));
        if (!out) return NULL;
        int end = d < depth ? space->level[d + 1].low : cut;
        const float *in = d ? units_of(level, layer) : model->units + (size_t)layer * model->row;
        const int32_t *parent = d ? level->parent.data : NOBODY;
        product(level->count, columns, in, level->width, end - level->low, w + (size_t)level->low * w_stride, w_stride,
                init, init_stride, parent, out, width);
        init = out;
        init_stride = width;
    }
    return (float *)init;
}

/* Compute units [done, cut) of every layer of level `depth`. */
static int extend(const Model *model, Workspace *space, int depth, int cut) {
    Level *level = &space->level[depth];
    int columns = cut - level->done, stride = padded(columns), begin = level->done;
    if (columns <= 0) return 1;
    float *stream = reserve(&space->stream, (size_t)level->count * stride * sizeof(float));
    if (!stream) return 0;
    const float *init = model->first + begin;
    int init_stride = 0;
    for (int d = 1; d <= depth; d++) { /* the first layer: a sum of one row per symbol read */
        const Level *above = &space->level[d];
        float *out = d == depth ? stream : reserve(&space->sums[d % 2], (size_t)above->count * stride * sizeof(float));
        if (!out) return 0;
        add_rows(above->count, columns, init, init_stride, above->parent.data,
                 model->position[above->position].delta + begin, model->row, above->symbol.data, out, stride);
        init = out;
        init_stride = stride;
    }
    int offset = begin - level->low;
    activate(level->count, columns, stream, NULL, stride, units_of(level, 0) + offset, level->width);
    for (int layer = 0; layer < model->layers; layer++) {
        float *sums = ancestral_product(model, space, depth, cut, layer, columns, model->weight[layer] + begin,
                                        model->row, model->bias[layer] + begin);
        if (!sums) return 0;
        activate(level->count, columns, sums, layer % 2 ? stream : NULL, stride, units_of(level, layer + 1) + offset,
                 level->width);
    }
    level->done = cut;
    return 1;
}

/* ---- particles ---- */

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

static int64_t state_of(const Node *node, const Level *level, int slots, int particle) {
    if (node->opens) return node->start;
    return ((const int64_t *)level->state.data)[(size_t)particle * slots + node->slot];
}

enum { DONE, NO_MEMORY, BAD_STATE };

/* Every allowed symbol of every particle becomes a child, or only adds to `sum` when no step follows. `each`, unless it
 * is NULL, takes what the children of every particle add up to. */
static int branch(const Model *model, Workspace *space, const Node *node, int slots, int grow, double *sum,
                  int *children, double *each) {
    const Level *level = &space->level[node->depth];
    const Position *position = &model->position[node->position];
    int size = position->size, width = padded(size), count = level->count, held = 0;
    const double *mass = level->mass.data;
    float *rows = ancestral_product(model, space, node->depth, position->cut, model->layers,
                                    position->direct ? size : model->features, position->out,
                                    padded(position->direct ? size : model->features), position->out_bias);
    float *chances = reserve(&space->chances, (size_t)width * sizeof(float));
    float *logits = position->direct ? NULL : reserve(&space->logits, (size_t)TILE * width * sizeof(float));
    size_t room = 0;
    if (!rows || !chances || (!position->direct && !logits)) return NO_MEMORY;
    if (grow) {
        for (int k = 0; k < count; k++) room += state_of(node, level, slots, k) == 0 ? 1 : size;
        if (!reserve(&space->child_mass, room * sizeof(double)) || !reserve(&space->child_parent, room * sizeof(int32_t)) ||
            !reserve(&space->child_symbol, room * sizeof(int32_t)))
            return NO_MEMORY;
    }
    double *child_mass = space->child_mass.data;
    int32_t *parent = space->child_parent.data, *symbol = space->child_symbol.data;
    *sum = 0;
    int ready = 0, first_ready = 0; /* logits are made for up to TILE particles at a time */
    for (int k = 0; k < count; k++) {
        int64_t state = state_of(node, level, slots, k);
        if (state < 0 || state >= node->states) return BAD_STATE;
        if (state == 0) { /* nothing more is asked: the position stays MASK */
            *sum += mass[k];
            if (each) each[k] = mass[k];
            if (grow) {
                child_mass[held] = mass[k];
                parent[held] = k;
                symbol[held++] = size;
            }
            continue;
        }
        const float *own = rows + (size_t)k * width;
        if (!position->direct) {
            if (k >= first_ready + ready) {
                int features = padded(model->features);
                first_ready = k;
                ready = count - k < TILE ? count - k : TILE;
                while (ready > 1 && state_of(node, level, slots, k + ready - 1) == 0) ready--;
                product(ready, size, rows + (size_t)k * features, features, model->features, position->tied, width,
                        position->bias, 0, (const int32_t[TILE]){0}, logits, width);
            }
            own = logits + (size_t)(k - first_ready) * width;
        }
        double share = mass[k] / exponentials(width, own, chances);
        const double *weights = node->weights + state * (size + 1);
        double total = 0;
        for (int v = 0; v < size; v++) total += weights[v] * chances[v];
        *sum += share * total;
        if (each) each[k] = share * total;
        for (int v = 0; grow && v < size; v++) {
            if (weights[v] == 0) continue;
            double m = share * weights[v] * chances[v];
            child_mass[held] = m;
            parent[held] = k;
            symbol[held] = v;
            held += m > 0;
        }
    }
    *children = held;
    return DONE;
}

/* The chosen children become the particles of the level below. */
static int descend(const Model *model, Workspace *space, const Node *node, int slots, int count, int thinned) {
    const Level *level = &space->level[node->depth];
    Level *below = &space->level[node->depth + 1];
    below->count = count;
    below->low = below->done = model->position[node->position].cut;
    below->position = node->position;
    below->width = padded(node->reach > below->low ? node->reach - below->low : 0) + LANES;
    below->thinned = level->thinned | thinned;
    below->most = level->most > count ? level->most : count;
    below->rows = level->rows + level->count;
    below->labels = 0;
    size_t units = (size_t)(model->layers + 1) * count * below->width;
    float *room = reserve(&below->units, units * sizeof(float));
    int32_t *parent = reserve(&below->parent, count * sizeof(int32_t));
    int32_t *symbol = reserve(&below->symbol, count * sizeof(int32_t));
    double *mass = reserve(&below->mass, count * sizeof(double));
    int64_t *state = reserve(&below->state, (size_t)count * (slots ? slots : 1) * sizeof(int64_t));
    if (!room || !parent || !symbol || !mass || !state) return NO_MEMORY;
    memcpy(parent, space->child_parent.data, count * sizeof(int32_t));
    memcpy(symbol, space->child_symbol.data, count * sizeof(int32_t));
    memcpy(mass, space->child_mass.data, count * sizeof(double));
    int size = model->position[node->position].size;
    for (int k = 0; slots && k < count; k++) {
        int64_t *own = state + (size_t)k * slots;
        memcpy(own, (int64_t *)level->state.data + (size_t)parent[k] * slots, slots * sizeof(int64_t));
        if (node->slot >= 0)
            own[node->slot] = node->next[state_of(node, level, slots, parent[k]) * (size + 1) + symbol[k]];
    }
    return DONE;
}

/* The one particle that every walk starts from: nothing is read yet. */
static int plant_root(const Model *model, Workspace *space, int slots) {
    Level *root = &space->level[0];
    root->count = root->most = 1;
    root->low = 0;
    root->done = model->hidden;
    root->width = model->row;
    root->thinned = root->labels = 0;
    root->rows = 0;
    double *mass = reserve(&root->mass, sizeof(double));
    int64_t *state = reserve(&root->state, (slots ? slots : 1) * sizeof(int64_t));
    if (!mass || !state) return NO_MEMORY;
    mass[0] = 1.0;
    memset(state, 0, slots * sizeof(int64_t));
    return DONE;
}

static int walk(const Model *model, Workspace *space, const Node *nodes, int count, int slots, int budget, double power,
                const double *offsets, Result *results) {
    if (plant_root(model, space, slots) != DONE) return NO_MEMORY;
    for (int n = 0; n < count; n++) {
        const Node *node = &nodes[n];
        Level *level = &space->level[node->depth];
        int grow = n + 1 < count && nodes[n + 1].depth > node->depth, children = 0, status;
        double sum = 0;
        if (level->count > 0) {
            if (!extend(model, space, node->depth, model->position[node->position].cut)) return NO_MEMORY;
            if ((status = branch(model, space, node, slots, grow, &sum, &children, NULL)) != DONE) return status;
        }
        if (node->ends)
            results[n] = (Result){sum, level->rows + level->count, !level->thinned, level->most};
        if (grow) {
            int kept = children;
            if (children > budget) kept = thin(space, children, budget, power, offsets[node->depth], node->hint, 0, NULL);
            if (kept < 0 || descend(model, space, node, slots, kept, kept < children) != DONE) return NO_MEMORY;
        }
    }
    return DONE;
}

#endif
