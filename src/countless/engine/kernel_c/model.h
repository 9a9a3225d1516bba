/* A model as the walk reads it, the memory a walk uses, and the steps it takes. */
#ifndef COUNTLESS_MODEL_H
#define COUNTLESS_MODEL_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- a model: pointers into arrays that Python keeps alive ---- */

typedef struct {
    int size, cut;         /* symbols; units that its logits may see */
    int direct;            /* whether units lead straight to logits, or by features and the tied embedding */
    const float *delta;    /* (size + 1, row) what each symbol adds to the first layer beyond MASK */
    const float *out;      /* (cut, padded(direct ? size : features)) */
    const float *out_bias; /* (padded(direct ? size : features)) */
    const float *tied;     /* (features, padded(size)) */
    const float *bias;     /* (padded(size)) */
    const float *root_sums;    /* (layers, row): when everything is MASK, what the units [0, cut) add to the next layer */
    const float *root_chances; /* (padded(size)): exponentials of the logits when everything is MASK */
    double root_total;         /* their sum */
} Position;

typedef struct {
    int positions, hidden, layers, features, row; /* row: padded hidden units */
    Position *position;
    int *order, *rank;    /* the position at each step of the model's order, and the step of each position */
    const float *first;   /* (row) sums of the first layer when everything is MASK */
    const float **weight; /* layers x (hidden, row): weight[l][i][j] leads from unit i to unit j of the next layer */
    const float **bias;   /* layers x (row) */
    const float *units;   /* (layers + 1, row): every unit of every layer when everything is MASK */
    float *root;          /* what the positions know of the root, in one piece: see root.h */
} Model;

/* ---- memory that one walk uses, kept for the next unless it is more than MOST_KEPT bytes ---- */

#define MOST_KEPT ((size_t)32 << 20)

typedef struct {
    void *data;
    size_t bytes;
} Buffer;

static void *reserve(Buffer *buffer, size_t bytes) {
    if (bytes > buffer->bytes || !buffer->data) {
        size_t grown = bytes + bytes / 2 + 64;
        free(buffer->data);
        buffer->data = malloc(grown);
        buffer->bytes = buffer->data ? grown : 0;
    }
    return buffer->data;
}

typedef struct {
    int count;               /* particles */
    int low, done;           /* units [low, done) are known here */
    int width;               /* the stride of a particle in one layer: room for what the steps below read, padded */
    int position;            /* the position read on the way here */
    int thinned, most;       /* whether anything was thinned on the way; the most particles held */
    double rows;             /* rows of logits computed on the way */
    Buffer units;            /* (layers + 1, count, width) */
    Buffer parent;           /* (count) int32: which particle of the level above */
    Buffer symbol;           /* (count) int32 */
    Buffer state;            /* (count, slots) int64 */
    Buffer mass;             /* (count) double */
    Buffer chance;           /* (count) double: how likely thinning was to keep each */
    double variance;         /* relative, of the sum of masses: what thinning on the way has added */
    int labels;              /* how many different labels there are; 0 before any position that gives them was read */
    Buffer label;            /* (count) int32, ascending */
} Level;

typedef struct Workspace {
    struct Workspace *next;
    Level *level;
    int levels;
    Buffer sums[2], stream, logits, chances, shares, allowed;
    Buffer child_mass, child_parent, child_symbol, child_size, child_chance, child_label;
    Buffer strata, marks, moved[3];
} Workspace;

/* Free the buffers, or only add up their bytes. */
static size_t buffers_bytes(Buffer *const *buffers, size_t count, int release) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += buffers[i]->bytes;
        if (release) free(buffers[i]->data);
    }
    return bytes;
}

static size_t workspace_buffers(Workspace *space, int release) {
    size_t bytes = 0;
    for (int d = 0; d < space->levels; d++) {
        Level *level = &space->level[d];
        Buffer *own[] = {&level->units, &level->parent, &level->symbol, &level->state, &level->mass, &level->chance, &level->label};
        bytes += buffers_bytes(own, sizeof own / sizeof *own, release);
    }
    Buffer *rest[] = {&space->sums[0],    &space->sums[1],      &space->stream,       &space->logits,
                      &space->chances,    &space->child_mass,   &space->child_parent, &space->child_symbol,
                      &space->child_size, &space->child_label,  &space->strata,       &space->moved[0],
                      &space->moved[1],   &space->moved[2],     &space->marks,        &space->shares,
                      &space->allowed,    &space->child_chance};
    return bytes + buffers_bytes(rest, sizeof rest / sizeof *rest, release);
}

static void workspace_free(Workspace *space) {
    workspace_buffers(space, 1);
    free(space->level);
    free(space);
}

static int workspace_levels(Workspace *space, int levels) {
    if (levels <= space->levels) return 1;
    Level *grown = realloc(space->level, levels * sizeof(Level));
    if (!grown) return 0;
    memset(grown + space->levels, 0, (levels - space->levels) * sizeof(Level));
    space->level = grown;
    space->levels = levels;
    return 1;
}

/* ---- a forest of steps ---- */

typedef struct {
    int position, depth, ends;
    int slot;              /* where the filter's state is kept between its positions; -1: it has only this one */
    int opens;             /* whether this is the filter's first position */
    int64_t start;         /* the state in which it opens */
    int reach;             /* units that the steps below need */
    int64_t states;
    const double *weights; /* (states, size + 1) */
    const int64_t *next;   /* (states, size + 1) */
    const double *hint;    /* (size + 1) how much the steps below favour each symbol, or NULL */
} Node;

typedef struct {
    double density, rows, variance;
    int exact, most;
} Result;

#endif
