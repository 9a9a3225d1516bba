/* A walk that keeps its particles: which rows they are, and what each weighs. Its readable twin is ../traced.py.
 *
 * One question at a time, so that level d has the particles after d steps; parents and symbols of all levels together
 * tell the rows. Some positions give *labels*: particles that read different symbols there are thinned apart.
 */
#ifndef COUNTLESS_TRACE_H
#define COUNTLESS_TRACE_H

#include "walk.h"

/* Children inherit their parents' labels. */
static int inherit(Workspace *space, const Level *level, int count) {
    int32_t *label = reserve(&space->child_label, (size_t)count * sizeof(int32_t));
    if (!label) return 0;
    const int32_t *parent = space->child_parent.data, *above = level->label.data;
    for (int i = 0; i < count; i++) label[i] = level->labels ? above[parent[i]] : 0;
    return 1;
}

/* Children are told apart by the symbol they read too, and put in the order of their labels. Returns how many labels
 * there are, 0 if memory is short. */
static int relabel(Workspace *space, int before, int size, int count) {
    size_t room = (size_t)(before ? before : 1) * (size + 1);
    int64_t *places = reserve(&space->strata, (room + 1) * sizeof(int64_t));
    double *mass = space->child_mass.data, *masses = reserve(&space->moved[0], (size_t)count * sizeof(double));
    int32_t *parent = space->child_parent.data, *parents = reserve(&space->moved[1], (size_t)count * sizeof(int32_t));
    int32_t *symbol = space->child_symbol.data, *symbols = reserve(&space->moved[2], (size_t)count * sizeof(int32_t));
    int32_t *label = space->child_label.data;
    if (!places || !masses || !parents || !symbols) return 0;
    memset(places, 0, (room + 1) * sizeof(int64_t));
    for (int i = 0; i < count; i++) places[(size_t)label[i] * (size + 1) + symbol[i] + 1]++;
    for (size_t r = 0; r < room; r++) places[r + 1] += places[r];
    for (int i = 0; i < count; i++) { /* a counting sort, which keeps children of one label in their order */
        int64_t place = places[(size_t)label[i] * (size + 1) + symbol[i]]++;
        masses[place] = mass[i];
        parents[place] = parent[i];
        symbols[place] = symbol[i];
    }
    int labels = 0;
    int64_t begin = 0;
    for (size_t r = 0; r < room; r++) { /* places[r] is now where run r ends */
        for (int64_t i = begin; i < places[r]; i++) label[i] = labels;
        labels += places[r] > begin;
        begin = places[r];
    }
    memcpy(mass, masses, count * sizeof(double));
    memcpy(parent, parents, count * sizeof(int32_t));
    memcpy(symbol, symbols, count * sizeof(int32_t));
    return labels;
}

/* Walk `count` steps, of which labelled[n] tells whether it gives labels, and budgets[n] how many particles it keeps. The
 * particles after step n are at level n + 1. The last step is not thinned; unless `expand`, it is summed: level `count`
 * is then as if it were not there, and `each` has the masses of the particles before it. If `scatter`, so is all
 * thinning. */
static int trace(const Model *model, Workspace *space, const Node *nodes, int count, int slots,
                 const int64_t *budgets, double power, const double *offsets, const int64_t *labelled, int expand,
                 int scatter, Buffer *each) {
    if (plant_root(model, space, slots) != DONE) return NO_MEMORY;
    for (int n = 0; n < count; n++) {
        const Node *node = &nodes[n];
        Level *level = &space->level[n];
        int last = n + 1 == count, grow = !last || expand, children = 0, labels = level->labels, status;
        int64_t allowed = 0;
        double sum = 0, variance = 0;
        double *sums = grow ? NULL : reserve(each, (size_t)(level->count + 1) * sizeof(double));
        if (!grow && !sums) return NO_MEMORY;
        if (level->count > 0) {
            if (!extend(model, space, n, model->position[node->position].cut)) return NO_MEMORY;
            if ((status = spread(model, space, node, slots, grow, &sum, &variance, &allowed, sums)) != DONE) return status;
        }
        if (!grow) break;
        int thinned = allowed > budgets[n] && !last, kept;
        if (thinned && sum > 0 && !labelled[n] && !scatter) { /* labels stay as they are: no list of children is needed */
            kept = choose(model, space, node, slots, (int)budgets[n], power, offsets[n]);
            if (kept < 0 || (labels && !inherit(space, level, kept))) return NO_MEMORY;
        } else {
            if (allowed && (children = list_children(model, space, node, slots, allowed)) < 0) return NO_MEMORY;
            if (children && (labels || labelled[n]) && !inherit(space, level, children)) return NO_MEMORY;
            if (children && labelled[n] &&
                !(labels = relabel(space, labels, model->position[node->position].size, children)))
                return NO_MEMORY;
            kept = children;
            thinned = children > budgets[n] && !last;
            if (thinned) {
                uint8_t *marks = scatter ? reserve(&space->marks, children) : NULL;
                if (scatter && !marks) return NO_MEMORY;
                kept = thin(space, children, (int)budgets[n], power, offsets[n], node->hint, labels, marks);
            }
        }
        if (kept < 0 || descend(model, space, node, slots, kept, thinned, 0) != DONE) return NO_MEMORY;
        Level *below = &space->level[n + 1];
        below->labels = labels;
        int32_t *label = reserve(&below->label, (size_t)(kept + 1) * sizeof(int32_t));
        if (!label) return NO_MEMORY;
        if (labels) memcpy(label, space->child_label.data, kept * sizeof(int32_t));
    }
    return DONE;
}

#endif
