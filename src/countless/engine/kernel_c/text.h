/* A causal Transformer over characters, evaluated on trees of tokens. Its readable twin is ../text/tree.py.
 *
 * A tree's nodes are tokens, and a node attends to its path from the root. Every node keeps its keys and values, so
 * strings that begin alike share what they have in common. Nodes are computed in the order of their numbers, some at
 * a time and layer by layer; a node's parent has a smaller number, so its keys are there when they are asked for.
 *
 * What is known of the row besides, a context, is a vector that is added to every token of its strings. A tree may have
 * several contexts, each with roots of its own; a node has its parent's.
 *
 * Every sum runs in the same order whatever the number of nodes, so a node does not depend on those beside it.
 */
#ifndef COUNTLESS_TEXT_H
#define COUNTLESS_TEXT_H

#include <stdlib.h>

#include "arithmetic.h"
#include "attention.h"

#define CHUNK 96                 /* nodes that go through the layers together; a multiple of TILE */
#define MOST_NODES (1 << 24)     /* of one tree */
#define SPARE_BYTES (1LL << 26)  /* of trees that are kept for later */

/* ---- a model: pointers into arrays that Python keeps alive; each matrix lies in panels, as `linear` reads it ---- */

typedef struct {
    const float *query, *query_bias;   /* width -> attention; heads are padded to whole vectors */
    const float *keys, *keys_bias;     /* width -> 2 attention: keys, then values */
    const float *out, *out_bias;       /* attention -> row */
    const float *up, *up_bias;         /* width -> padded(inner) */
    const float *down, *down_bias;     /* inner -> row */
} Block;

typedef struct {
    int symbols, length, width, heads, inner, blocks, buckets, grams;
    int row, head, attention; /* padded: a token, a head, all heads */
    const int64_t *gram;      /* (grams) ascending lengths */
    const int64_t *hash_id;   /* (symbols + 1) the number of each token in the hash of n-grams; MASK is the last */
    const float *embedding;   /* (symbols + 1, row) */
    const float *positions;   /* (length + 1, row) */
    const float *hashed;      /* (grams, buckets, row) */
    const float *tied, *bias; /* width -> padded(symbols) */
    Block *block;
} TextModel;

typedef struct Tree {
    struct Tree *next;
    int size, room, busy;
    int roots, rooted;       /* the first nodes, length + 1 for each context; whether all of them are computed */
    int64_t planting;        /* trees of the same planting have the same roots */
    int32_t *parent, *token, *position, *context;
    int32_t *depth;          /* (room) each; depth: nodes on the path, itself included */
    float **keys;            /* blocks x (room, 2 attention): each node's keys, then its values */
    float *shift;            /* (contexts, row) what a context adds to every token */
    float *stream, *normal, *query, *inside, *logits, *scores;
    int32_t *path; /* (CHUNK, length + 1) */
} Tree;

/* ---- memory ---- */

static void *aligned(size_t bytes) {
    void *memory;
    return posix_memalign(&memory, 64, bytes ? bytes : 64) ? NULL : memory;
}

static void tree_free(const TextModel *model, Tree *tree) {
    for (int b = 0; tree->keys && b < model->blocks; b++) free(tree->keys[b]);
    void *rest[] = {tree->parent, tree->token,  tree->position, tree->context, tree->depth,  tree->keys, tree->shift,
                    tree->stream, tree->normal, tree->query,    tree->inside,  tree->logits, tree->scores, tree->path};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) free(rest[i]);
    free(tree);
}

static Tree *tree_new(const TextModel *model) {
    Tree *tree = calloc(1, sizeof(Tree));
    if (!tree) return NULL;
    tree->keys = calloc(model->blocks, sizeof(float *));
    tree->stream = aligned((size_t)CHUNK * model->row * sizeof(float));
    tree->normal = aligned((size_t)CHUNK * model->row * sizeof(float));
    tree->query = aligned((size_t)CHUNK * model->attention * sizeof(float));
    tree->inside = aligned((size_t)CHUNK * padded(model->inner) * sizeof(float));
    tree->logits = aligned((size_t)CHUNK * padded(model->symbols) * sizeof(float));
    tree->scores = aligned((size_t)model->heads * padded(model->length + 1) * sizeof(float));
    tree->path = aligned((size_t)CHUNK * (model->length + 1) * sizeof(int32_t));
    if (tree->keys && tree->stream && tree->normal && tree->query && tree->inside && tree->logits && tree->scores &&
        tree->path)
        return tree;
    tree_free(model, tree);
    return NULL;
}

static int64_t tree_bytes(const TextModel *model, const Tree *tree) {
    return (int64_t)tree->room * ((int64_t)model->blocks * 2 * model->attention + 5) * (int64_t)sizeof(float);
}

/* Room for `bytes` bytes in place of the first `used`. */
static int moved(void **memory, size_t used, size_t bytes) {
    void *grown = aligned(bytes);
    if (!grown) return 0;
    if (used) memcpy(grown, *memory, used);
    free(*memory);
    *memory = grown;
    return 1;
}

static int tree_reserve(const TextModel *model, Tree *tree, int nodes) {
    if (nodes <= tree->room) return 1;
    size_t room = nodes > 2 * tree->room ? nodes : 2 * tree->room, row = 2 * (size_t)model->attention * sizeof(float);
    int32_t **numbers[] = {&tree->parent, &tree->token, &tree->position, &tree->context, &tree->depth};
    for (int i = 0; i < 5; i++)
        if (!moved((void **)numbers[i], tree->size * sizeof(int32_t), room * sizeof(int32_t))) return 0;
    for (int b = 0; b < model->blocks; b++)
        if (!moved((void **)&tree->keys[b], tree->size * row, room * row)) return 0;
    tree->room = (int)room;
    return 1;
}

/* ---- tokens ---- */

/* A token's first vector: its own, its position's, its context's, and those of the n-grams that end in it. */
FAST static void embed(const TextModel *model, const Tree *tree, int node, float *out) {
    const float *token = model->embedding + (size_t)tree->token[node] * model->row;
    const float *position = model->positions + (size_t)tree->position[node] * model->row;
    const float *shift = tree->shift + (size_t)tree->context[node] * model->row;
    for (int c = 0; c < model->row; c += LANES) store(out + c, load(token + c) + load(position + c) + load(shift + c));
    uint32_t hash = 2166136261u;
    for (int g = 0, length = 0; g < model->grams; g++) {
        for (; length < model->gram[g]; length++) {
            hash = (hash ^ (uint32_t)model->hash_id[node < 0 ? model->symbols : tree->token[node]]) * 16777619u;
            node = node < 0 ? node : tree->parent[node];
        }
        size_t bucket = (hash >> 7) % (uint32_t)model->buckets;
        const float *row = model->hashed + ((size_t)g * model->buckets + bucket) * model->row;
        for (int c = 0; c < model->row; c += LANES) store(out + c, load(out + c) + load(row + c));
    }
}

/* out (rows, symbols) = softmax of the logits. */
FAST static void probabilities(int rows, int symbols, float *logits, float *out) {
    int width = padded(symbols);
    for (int r = 0; r < rows; r++, logits += width, out += symbols) {
        softmax(width, logits);
        memcpy(out, logits, symbols * sizeof(float));
    }
}

/* ---- layers ---- */

static void through_block(const TextModel *model, Tree *tree, int b, int first, int count, int step) {
    const Block *block = &model->block[b];
    int row = model->row, width = model->width, attention = model->attention, inner = padded(model->inner);
    float *own = tree->keys[b] + (size_t)first * 2 * attention;
    int apart = step * 2 * attention;
    normalise(count, width, tree->stream, tree->normal, row);
    linear(count, attention, tree->normal, row, width, block->query, block->query_bias, SET, tree->query, attention);
    linear(count, 2 * attention, tree->normal, row, width, block->keys, block->keys_bias, SET, own, apart);
    for (int i = 0; i < count; i++)
        attend(model->heads, model->head, tree->depth[first + i * step], tree->path + (size_t)i * (model->length + 1),
               tree->keys[b], tree->query + (size_t)i * attention, tree->scores);
    linear(count, row, tree->query, attention, attention, block->out, block->out_bias, ADD, tree->stream, row);
    normalise(count, width, tree->stream, tree->normal, row);
    linear(count, inner, tree->normal, row, width, block->up, block->up_bias, RELU, tree->inside, inner);
    linear(count, row, tree->inside, inner, model->inner, block->down, block->down_bias, ADD, tree->stream, row);
}

/* The probabilities (count, symbols) after every `step`-th node from `first` on, whose numbers are set; `out` may be
 * NULL. */
static void compute(const TextModel *model, Tree *tree, int first, int count, int step, float *out) {
    int symbols = model->symbols, row = model->row;
    for (int done = 0; done < count; done += CHUNK) {
        int some = count - done < CHUNK ? count - done : CHUNK, begin = first + done * step;
        for (int i = 0; i < some; i++) {
            int32_t *path = tree->path + (size_t)i * (model->length + 1);
            int node = begin + i * step;
            for (int d = tree->depth[node], at = node; d--; at = tree->parent[at]) path[d] = at;
            embed(model, tree, node, tree->stream + (size_t)i * row);
        }
        for (int b = 0; b < model->blocks; b++) through_block(model, tree, b, begin, some, step);
        if (!out) continue;
        normalise(some, model->width, tree->stream, tree->normal, row);
        linear(some, padded(symbols), tree->normal, row, model->width, model->tied, model->bias, SET, tree->logits,
               padded(symbols));
        probabilities(some, symbols, tree->logits, out + (size_t)done * symbols);
    }
}

/* ---- trees ---- */

enum { GROWN, TREE_TOO_LARGE, TREE_NO_MEMORY, BAD_PARENT, BAD_TOKEN, BAD_POSITION };

static void set_node(Tree *tree, int node, int parent, int token, int position, int context) {
    tree->parent[node] = parent;
    tree->token[node] = token;
    tree->position[node] = position;
    tree->depth[node] = parent < 0 ? 1 : tree->depth[parent] + 1;
    tree->context[node] = context;
}

/* Compute every root: until then only those at position 0 are. */
static void tree_root(const TextModel *model, Tree *tree, float *out) {
    compute(model, tree, 0, tree->roots, 1, out);
    tree->rooted = 1;
}

/* Append nodes. Without `positions` each follows right after its parent; with them, anywhere later. */
static int tree_extend(const TextModel *model, Tree *tree, int64_t count, const int64_t *parents, const int64_t *tokens,
                       const int64_t *positions, float *out) {
    if (count > MOST_NODES - tree->size) return TREE_TOO_LARGE;
    if (!tree_reserve(model, tree, tree->size + (int)count)) return TREE_NO_MEMORY;
    int rooted = 1; /* whether the roots that are needed are computed */
    for (int64_t i = 0; i < count; i++) {
        if (parents[i] < 0 || parents[i] >= tree->size + i) return BAD_PARENT;
        if (tokens[i] < 0 || tokens[i] > model->symbols) return BAD_TOKEN;
        int before = tree->position[parents[i]];
        int64_t position = positions ? positions[i] : before + 1;
        if (position <= before || position > model->length) return BAD_POSITION;
        if (parents[i] < tree->roots && before > 0) rooted = tree->rooted;
        set_node(tree, tree->size + (int)i, (int)parents[i], (int)tokens[i], (int)position, tree->context[parents[i]]);
    }
    if (!rooted) tree_root(model, tree, NULL);
    compute(model, tree, tree->size, (int)count, 1, out);
    tree->size += (int)count;
    return GROWN;
}

/* Room for the roots of so many contexts, MASK at each position; a root's context adds `shifts` (contexts, width). */
static int tree_plant(const TextModel *model, Tree *tree, int64_t contexts, const float *shifts) {
    int64_t each = (int64_t)model->length + 1, roots = contexts * each;
    if (roots > MOST_NODES / 2 || each * 2 * model->attention > INT32_MAX) return TREE_TOO_LARGE;
    tree->size = tree->rooted = 0;
    tree->planting = 0;
    if (!tree_reserve(model, tree, 2 * (int)roots)) return TREE_NO_MEMORY;
    if (!moved((void **)&tree->shift, 0, contexts * model->row * sizeof(float))) return TREE_NO_MEMORY;
    memset(tree->shift, 0, contexts * model->row * sizeof(float));
    for (int c = 0; shifts && c < contexts; c++)
        memcpy(tree->shift + (size_t)c * model->row, shifts + (size_t)c * model->width, model->width * sizeof(float));
    for (int node = 0; node < roots; node++)
        set_node(tree, node, -1, model->symbols, node % (int)each, node / (int)each);
    tree->size = tree->roots = (int)roots;
    return GROWN;
}

/* Of new roots only those at position 0 are computed: the probabilities (contexts, symbols) after them. */
static int tree_begin(const TextModel *model, Tree *tree, int64_t contexts, const float *shifts, float *out) {
    int status = tree_plant(model, tree, contexts, shifts);
    if (status == GROWN) compute(model, tree, 0, (int)contexts, model->length + 1, out);
    return status;
}

/* The same roots as `base` has, which has one context. */
static int tree_copy_roots(const TextModel *model, Tree *tree, const Tree *base) {
    int status = tree_plant(model, tree, 1, base->shift);
    if (status != GROWN) return status;
    for (int b = 0; b < model->blocks; b++)
        memcpy(tree->keys[b], base->keys[b], (size_t)base->roots * 2 * model->attention * sizeof(float));
    tree->rooted = 1;
    tree->planting = base->planting;
    return GROWN;
}

#endif
