/* What every walk begins with: sums and chances when everything is MASK, which are the same for all questions. They are
 * computed once, when a model is loaded, by the very steps that a walk would take. */
#ifndef COUNTLESS_ROOT_H
#define COUNTLESS_ROOT_H

#include "arithmetic.h"
#include "model.h"

static const int32_t NOBODY[1] = {0};

/* The sums over all units before each position's cut, and so over those of the positions before it first. */
static float *make_root_sums(Model *model, float *room) {
    const float *before = NULL;
    int done = 0;
    for (int rank = 0; rank < model->positions; rank++) {
        Position *position = &model->position[model->order[rank]];
        if (before && position->cut == done) {
            position->root_sums = before;
            continue;
        }
        for (int layer = 0; layer < model->layers; layer++) {
            const float *init = before ? before + (size_t)layer * model->row : model->bias[layer];
            product(1, model->hidden, model->units + (size_t)layer * model->row + done, 0, position->cut - done,
                    model->weight[layer] + (size_t)done * model->row, model->row, init, 0, NOBODY,
                    room + (size_t)layer * model->row, 0);
        }
        position->root_sums = before = room;
        done = position->cut;
        room += (size_t)model->layers * model->row;
    }
    return room;
}

static int make_root_chances(const Model *model, Position *position, float *room) {
    int width = padded(position->direct ? position->size : model->features);
    float *rows = malloc((size_t)(width + padded(position->size)) * sizeof(float)), *logits = rows;
    if (!rows) return 0;
    product(1, position->direct ? position->size : model->features, model->units + (size_t)model->layers * model->row, 0,
            position->cut, position->out, width, position->out_bias, 0, NOBODY, rows, 0);
    if (!position->direct) {
        logits = rows + width;
        product(1, position->size, rows, 0, model->features, position->tied, padded(position->size), position->bias, 0,
                NOBODY, logits, 0);
    }
    position->root_total = exponentials(padded(position->size), logits, room);
    position->root_chances = room;
    free(rows);
    return 1;
}

/* Make the sums and chances of all positions; 0 if memory is short, -1 if the cuts do not rise in the model's order. */
static int make_root(Model *model) {
    size_t room = 0;
    for (int rank = 0, done = -1; rank < model->positions; rank++) {
        const Position *position = &model->position[model->order[rank]];
        if (position->cut < done) return -1;
        room += padded(position->size) + (position->cut > done ? (size_t)model->layers * model->row : 0);
        done = position->cut;
    }
    if (!(model->root = calloc(room + LANES, sizeof(float)))) return 0;
    float *next = make_root_sums(model, model->root);
    for (int p = 0; p < model->positions; p++) {
        if (!make_root_chances(model, &model->position[p], next)) return 0;
        next += padded(model->position[p].size);
    }
    return 1;
}

#endif
