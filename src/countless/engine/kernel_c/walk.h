/* The particle walk of a ResMADE. Its readable twin is ../columns/particles.py on the NumPy runtime
 * of ../columns/resmade.py.
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

#include "root.h"
#include "thinning.h"

/* ---- levels ---- */

static float *units_of(const Level *level, int layer) {
    return (float *)level->units.data + (size_t)layer * level->count * level->width;
}

/* What the units [0, cut) of `layer` add up to in `columns` columns from `w` on, for every particle of level `depth`.
 * Each ancestor's share is computed once; `init` has the sums of those before the level `first`. Returns the sums,
 * `columns` padded wide. */
static float *ancestral_product(const Model *model, Workspace *space, int first, int depth, int cut, int layer,
                                int columns, const float *w, int w_stride, const float *init) {
    int width = padded(columns), init_stride = 0;
    for (int d = first; d <= depth; d++) {
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
    int offset = begin - level->low; /* the root has all units, so that this is a level below it */
    const float *root = model->position[space->level[1].position].root_sums + begin;
    activate(level->count, columns, stream, NULL, stride, units_of(level, 0) + offset, level->width);
    for (int layer = 0; layer < model->layers; layer++) {
        float *sums = ancestral_product(model, space, 1, depth, cut, layer, columns, model->weight[layer] + begin,
                                        model->row, root + (size_t)layer * model->row);
        if (!sums) return 0;
        activate(level->count, columns, sums, layer % 2 ? stream : NULL, stride, units_of(level, layer + 1) + offset,
                 level->width);
    }
    level->done = cut;
    return 1;
}

/* ---- particles ---- */

/* How many of the positive weights there are. */
FAST static int64_t count_positive(int size, const double *weights) {
    int64_t found = 0;
    for (int v = 0; v < size; v++) found += weights[v] > 0;
    return found;
}

/* The sum of weights times chances; in several sums at a time, always the same ones. */
FAST static double weighted_sum(int size, const double *weights, const float *chances) {
    double sums[LANES] = {0}, total = 0;
    int v = 0;
    for (; v + LANES <= size; v += LANES)
        for (int lane = 0; lane < LANES; lane++) sums[lane] += weights[v + lane] * chances[v + lane];
    for (int lane = 0; v < size; v++, lane++) sums[lane] += weights[v] * chances[v];
    for (int lane = 0; lane < LANES; lane++) total += sums[lane];
    return total;
}

static int64_t state_of(const Node *node, const Level *level, int slots, int particle) {
    if (node->opens) return node->start;
    return ((const int64_t *)level->state.data)[(size_t)particle * slots + node->slot];
}

enum { DONE, NO_MEMORY, BAD_STATE };

/* The chance of every symbol at a node's position, for every particle of its level, a row each: exponentials of the
 * logits, and for each particle its `shares`, its mass over their sum. A particle of which nothing more is asked takes
 * MASK, with its whole mass. `sum` is what all allowed symbols have, and `each`, unless it is NULL, what each particle's
 * have; `children` is how many there are. `variance` is that of the sum, by the chances that thinning has kept these
 * particles with. If no step follows (`grow` is 0), only one row is kept. */
static int spread(const Model *model, Workspace *space, const Node *node, int slots, int grow, double *sum,
                  double *variance, int64_t *children, double *each) {
    const Level *level = &space->level[node->depth];
    const Position *position = &model->position[node->position];
    int size = position->size, width = padded(size), stride = padded(size + 1), count = level->count;
    const double *mass = level->mass.data, *chance = level->chance.data;
    int is_root = node->depth == 0, columns = position->direct ? size : model->features;
    float *rows = is_root ? NULL : ancestral_product(model, space, 0, node->depth, position->cut, model->layers, columns,
                                                     position->out, padded(columns), position->out_bias);
    float *chances = reserve(&space->chances, (size_t)(grow ? count : 1) * stride * sizeof(float));
    double *shares = reserve(&space->shares, (size_t)count * sizeof(double));
    float *logits = position->direct ? NULL : reserve(&space->logits, (size_t)TILE * width * sizeof(float));
    int64_t *allowed = reserve(&space->allowed, (size_t)node->states * sizeof(int64_t));
    if ((!is_root && !rows) || !chances || !shares || !allowed || (!position->direct && !logits)) return NO_MEMORY;
    for (int64_t state = 0; state < node->states; state++) allowed[state] = -1; /* not counted yet */
    *sum = *variance = 0;
    *children = 0;
    int ready = 0, first_ready = 0; /* logits are made for up to TILE particles at a time */
    for (int k = 0; k < count; k++) {
        int64_t state = state_of(node, level, slots, k);
        float *own = chances + (grow ? (size_t)k * stride : 0);
        if (state < 0 || state >= node->states) return BAD_STATE;
        if (state == 0) { /* nothing more is asked: the position stays MASK */
            memset(own, 0, stride * sizeof(float));
            own[size] = 1.0f;
            shares[k] = mass[k];
            *sum += mass[k];
            *variance += (1.0 - chance[k]) * mass[k] * mass[k];
            if (each) each[k] = mass[k];
            *children += 1;
            continue;
        }
        const float *from = is_root ? NULL : rows + (size_t)k * width;
        if (!is_root && !position->direct) {
            if (k >= first_ready + ready) {
                int features = padded(model->features);
                first_ready = k;
                ready = count - k < TILE ? count - k : TILE;
                while (ready > 1 && state_of(node, level, slots, k + ready - 1) == 0) ready--;
                product(ready, size, rows + (size_t)k * features, features, model->features, position->tied, width,
                        position->bias, 0, (const int32_t[TILE]){0}, logits, width);
            }
            from = logits + (size_t)(k - first_ready) * width;
        }
        const double *weights = node->weights + state * (size + 1);
        if (is_root) memcpy(own, position->root_chances, width * sizeof(float));
        shares[k] = mass[k] / (is_root ? position->root_total : exponentials(width, from, own));
        if (stride > width) memset(own + width, 0, (stride - width) * sizeof(float));
        if (allowed[state] < 0) allowed[state] = count_positive(size, weights);
        *children += allowed[state];
        double total = shares[k] * weighted_sum(size, weights, own);
        *sum += total;
        *variance += (1.0 - chance[k]) * total * total;
        if (each) each[k] = total;
    }
    return DONE;
}

static int make_room(Workspace *space, int64_t count) {
    return reserve(&space->child_mass, (size_t)(count + 1) * sizeof(double)) &&
           reserve(&space->child_chance, (size_t)(count + 1) * sizeof(double)) &&
           reserve(&space->child_parent, (size_t)(count + 1) * sizeof(int32_t)) &&
           reserve(&space->child_symbol, (size_t)(count + 1) * sizeof(int32_t));
}

/* A child of which thinning keeps one with this chance: it stands for those that are not kept. */
static int add_child(Workspace *space, int held, double mass, double chance, int parent, int symbol) {
    ((double *)space->child_mass.data)[held] = mass / chance;
    ((double *)space->child_chance.data)[held] = chance;
    ((int32_t *)space->child_parent.data)[held] = parent;
    ((int32_t *)space->child_symbol.data)[held] = symbol;
    return held + (mass > 0);
}

/* Every allowed symbol of every particle becomes a child. Returns how many have mass; -1 if memory is short. */
static int list_children(const Model *model, Workspace *space, const Node *node, int slots, int64_t children) {
    const Level *level = &space->level[node->depth];
    int size = model->position[node->position].size, stride = padded(size + 1), held = 0;
    const double *shares = space->shares.data;
    if (children >= INT32_MAX || !make_room(space, children)) return -1;
    for (int k = 0; k < level->count; k++) {
        int64_t state = state_of(node, level, slots, k);
        const float *own = (const float *)space->chances.data + (size_t)k * stride;
        const double *weights = node->weights + state * (size + 1);
        for (int v = state ? 0 : size; v <= size - (state != 0); v++)
            if (weights[v] > 0) held = add_child(space, held, shares[k] * weights[v] * own[v], 1.0, k, v);
    }
    return held;
}

/* ---- choosing among many children: what thin() does, without a list of them ---- */

#define MOST_SCALE 1e30 /* times a size it is still a number */

/* As even_out, of rows of sizes whose particles have labels: the rows of a label are divided by the root of their sum. */
static int even_out_rows(Workspace *space, const Level *level, int stride, float *sizes) {
    const int32_t *label = level->label.data;
    double *strata = reserve(&space->strata, (size_t)level->labels * sizeof(double));
    if (!strata) return 0;
    memset(strata, 0, level->labels * sizeof(double));
    for (int k = 0; k < level->count; k++) strata[label[k]] += row_sum(stride, sizes + (size_t)k * stride);
    for (int l = 0; l < level->labels; l++) strata[l] = strata[l] > 0 ? 1.0 / sqrt(strata[l]) : 0.0;
    for (int k = 0; k < level->count; k++) scale_row(stride, (float)strata[label[k]], sizes + (size_t)k * stride);
    return 1;
}

/* Choose about `keep` of the children without bias: one point falls into every unit of the line on which each child has
 * the length of its inclusion probability. Most blocks of children are passed over in one step. */
static int choose(const Model *model, Workspace *space, const Node *node, int slots, int keep, double power,
                  double offset) {
    const Level *level = &space->level[node->depth];
    int size = model->position[node->position].size, stride = padded(size + 1), count = level->count, held = 0;
    size_t all = (size_t)count * stride;
    const double *shares = space->shares.data;
    const float *chances = space->chances.data;
    float *sizes = reserve(&space->child_size, (all + stride) * sizeof(float));
    double most = 0;
    if (!sizes || !make_room(space, 2 * (int64_t)keep + 2)) return -1;
    float *factors = sizes + all;
    for (int k = 0; k < count; k++) most = shares[k] > most ? shares[k] : most;
    int64_t known = -1;
    for (int k = 0; k < count; k++) {
        int64_t state = state_of(node, level, slots, k);
        const double *weights = node->weights + state * (size + 1);
        if (state != known) factors_of(size, stride, weights, power, node->hint, factors);
        known = state;
        row_sizes(stride, power, (float)pow(shares[k] / most, power), factors, chances + (size_t)k * stride,
                  sizes + (size_t)k * stride);
    }
    if (level->labels && !even_out_rows(space, level, stride, sizes)) return -1;
    double *sums = reserve(&space->strata, (stride / LANES) * sizeof(double));
    if (!sums) return -1;
    double c = float_threshold(sizes, count, stride, keep), edge = -offset, next = 0.0;
    float scale = (float)fmin(1.0 / c, MOST_SCALE);
    for (int k = 0; k < count; k++) {
        const float *row = sizes + (size_t)k * stride, *own = chances + (size_t)k * stride;
        const double *weights = node->weights + state_of(node, level, slots, k) * (size + 1);
        block_sums(stride / LANES, row, scale, sums);
        for (int b = 0; b < stride / LANES; b++) {
            double end = edge + sums[b];
            for (int v = b * LANES; end >= next && v < (b + 1) * LANES && v <= size; v++) {
                if (!(row[v] > 0)) continue;
                double inclusion = row[v] * scale < 1.0f ? row[v] * scale : 1.0;
                edge += inclusion;
                if (edge < next) continue; /* no point falls into this child */
                if (held < 2 * keep + 2)
                    held = add_child(space, held, shares[k] * weights[v] * own[v], inclusion, k, v);
                next += 1.0;
            }
            edge = end;
        }
    }
    return held;
}

/* The chosen children become the particles of the level below; `variance` is the relative one of their parents' sum. */
static int descend(const Model *model, Workspace *space, const Node *node, int slots, int count, int thinned,
                   double variance) {
    const Level *level = &space->level[node->depth];
    Level *below = &space->level[node->depth + 1];
    below->count = count;
    below->low = below->done = model->position[node->position].cut;
    below->position = node->position;
    below->width = padded(node->reach > below->low ? node->reach - below->low : 0) + LANES;
    below->thinned = level->thinned | thinned;
    below->variance = variance;
    below->most = level->most > count ? level->most : count;
    below->rows = level->rows + level->count;
    below->labels = 0;
    size_t units = (size_t)(model->layers + 1) * count * below->width;
    float *room = reserve(&below->units, units * sizeof(float));
    int32_t *parent = reserve(&below->parent, count * sizeof(int32_t));
    int32_t *symbol = reserve(&below->symbol, count * sizeof(int32_t));
    double *mass = reserve(&below->mass, count * sizeof(double));
    double *chance = reserve(&below->chance, count * sizeof(double));
    int64_t *state = reserve(&below->state, (size_t)count * (slots ? slots : 1) * sizeof(int64_t));
    if (!room || !parent || !symbol || !mass || !chance || !state) return NO_MEMORY;
    if (count > 0) { /* without children there may be no memory to copy from, which memcpy must not be given */
        memcpy(chance, space->child_chance.data, count * sizeof(double));
        memcpy(parent, space->child_parent.data, count * sizeof(int32_t));
        memcpy(symbol, space->child_symbol.data, count * sizeof(int32_t));
        memcpy(mass, space->child_mass.data, count * sizeof(double));
    }
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
    root->rows = root->variance = 0;
    double *mass = reserve(&root->mass, sizeof(double));
    double *chance = reserve(&root->chance, sizeof(double));
    int64_t *state = reserve(&root->state, (slots ? slots : 1) * sizeof(int64_t));
    if (!mass || !chance || !state) return NO_MEMORY;
    mass[0] = chance[0] = 1.0;
    memset(state, 0, slots * sizeof(int64_t));
    return DONE;
}

static int walk(const Model *model, Workspace *space, const Node *nodes, int count, int slots, int budget, double power,
                const double *offsets, Result *results) {
    if (plant_root(model, space, slots) != DONE) return NO_MEMORY;
    for (int n = 0; n < count; n++) {
        const Node *node = &nodes[n];
        Level *level = &space->level[node->depth];
        int grow = n + 1 < count && nodes[n + 1].depth > node->depth, status;
        int64_t children = 0;
        double sum = 0, variance = 0;
        if (level->count > 0) {
            if (!extend(model, space, node->depth, model->position[node->position].cut)) return NO_MEMORY;
            if ((status = spread(model, space, node, slots, grow, &sum, &variance, &children, NULL)) != DONE) return status;
        }
        variance = level->variance + (sum > 0 ? variance / sum / sum : INFINITY); /* relative to the sum */
        if (node->ends)
            results[n] = (Result){sum, level->rows + level->count, variance, !level->thinned, level->most};
        if (grow) {
            int many = children > budget, kept = 0;
            if (many && sum > 0) kept = choose(model, space, node, slots, budget, power, offsets[node->depth]);
            else if (children) kept = list_children(model, space, node, slots, children);
            if (kept < 0 || descend(model, space, node, slots, kept, many && sum > 0, variance) != DONE)
                return NO_MEMORY;
        }
    }
    return DONE;
}

#endif
