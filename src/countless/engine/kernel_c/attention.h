/* The parts of a Transformer: linear maps in panels, and attention along a path. */
#ifndef COUNTLESS_ATTENTION_H
#define COUNTLESS_ATTENTION_H

#include "arithmetic.h"

#define FAR_BELOW -1e30f

/* Four floats: half a shuffle's work, and every instruction set has them. */
typedef float quad __attribute__((vector_size(16), aligned(4)));
typedef int32_t iquad __attribute__((vector_size(16), aligned(4)));

#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (iquad){i, j, k, l})
#endif

INLINE quad load4(const float *p) {
    quad v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE vec larger(vec a, vec b) { return (vec)(((ivec)a & (a > b)) | ((ivec)b & ~(a > b))); }

INLINE float total_of(vec v) {
    quad part[4];
    memcpy(part, &v, sizeof v);
    quad sum = (part[0] + part[1]) + (part[2] + part[3]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

INLINE quad larger4(quad a, quad b) { return (quad)(((iquad)a & (a > b)) | ((iquad)b & ~(a > b))); }

INLINE float most_of(vec v) {
    quad part[4];
    memcpy(part, &v, sizeof v);
    quad most = larger4(larger4(part[0], part[1]), larger4(part[2], part[3]));
    most = larger4(most, PICK(most, most, 2, 3, 0, 1));
    return most[0] > most[1] ? most[0] : most[1];
}

/* The scores become probabilities. Those of the padding are far below all others. */
INLINE void softmax(int width, float *scores) {
    vec most = load(scores), sum = {0};
    for (int c = LANES; c < width; c += LANES) most = larger(load(scores + c), most);
    float highest = most_of(most);
    for (int c = 0; c < width; c += LANES) {
        vec e = exponential(load(scores + c) - highest);
        store(scores + c, e);
        sum += e;
    }
    float scale = 1.0f / total_of(sum);
    for (int c = 0; c < width; c += LANES) store(scores + c, load(scores + c) * scale);
}

/* ---- linear maps ---- */

enum { SET, RELU, ADD };

/* out = in @ w + bias for a few rows and panels; a panel is LANES columns of w, (depth, LANES) in one piece. */
INLINE void panel(int rows, int panels, const float *in, int in_stride, int depth, const float *w, const float *bias,
                  int mode, float *out, int out_stride) {
    vec sum[TILE];
    for (int r = 0; r < rows; r++)
        for (int p = 0; p < panels; p++) sum[r * panels + p] = load(bias + p * LANES);
    for (int i = 0; i < depth; i++) {
        for (int p = 0; p < panels; p++) {
            vec weight = load(w + ((size_t)p * depth + i) * LANES);
            for (int r = 0; r < rows; r++) sum[r * panels + p] += in[(size_t)r * in_stride + i] * weight;
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int p = 0; p < panels; p++) {
            float *o = out + (size_t)r * out_stride + p * LANES;
            vec v = sum[r * panels + p];
            store(o, mode == RELU ? relu(v) : mode == ADD ? load(o) + v : v);
        }
    }
}

/* The same for any number of rows and panels. A few rows take several panels at a time, which keeps the adders busy. */
FAST static void linear(int rows, int columns, const float *in, int in_stride, int depth, const float *w,
                        const float *bias, int mode, float *out, int out_stride) {
    int whole = rows / TILE * TILE, rest = rows - whole, together = rest == 1 ? 4 : rest <= 3 ? 2 : 1;
    for (int c = 0; c < columns; c += LANES)
        for (int r = 0; r < whole; r += TILE)
            panel(TILE, 1, in + (size_t)r * in_stride, in_stride, depth, w + (size_t)c * depth, bias + c, mode,
                  out + (size_t)r * out_stride + c, out_stride);
    in += (size_t)whole * in_stride;
    out += (size_t)whole * out_stride;
    for (int c = 0, next; rest && c < columns; c = next) {
        const float *v = w + (size_t)c * depth, *b = bias + c;
        float *o = out + c;
        int many = columns - c >= together * LANES;
        next = c + (many ? together : 1) * LANES;
        switch (many ? rest : -rest) {
        case 1: panel(1, 4, in, in_stride, depth, v, b, mode, o, out_stride); break;
        case 2: panel(2, 2, in, in_stride, depth, v, b, mode, o, out_stride); break;
        case 3: panel(3, 2, in, in_stride, depth, v, b, mode, o, out_stride); break;
        case 4: panel(4, 1, in, in_stride, depth, v, b, mode, o, out_stride); break;
        case 5: panel(5, 1, in, in_stride, depth, v, b, mode, o, out_stride); break;
        case -1: panel(1, 1, in, in_stride, depth, v, b, mode, o, out_stride); break;
        case -2: panel(2, 1, in, in_stride, depth, v, b, mode, o, out_stride); break;
        default: panel(3, 1, in, in_stride, depth, v, b, mode, o, out_stride);
        }
    }
}

/* ---- attention ---- */

/* The products of one head's query with four keys. */
INLINE quad dots(int head, const float *query, const float *const *key, int offset) {
    quad a = {0}, b = {0}, c = {0}, d = {0};
    for (int i = 0; i < head; i += 4) {
        quad q = load4(query + offset + i);
        a += q * load4(key[0] + offset + i);
        b += q * load4(key[1] + offset + i);
        c += q * load4(key[2] + offset + i);
        d += q * load4(key[3] + offset + i);
    }
    quad ab = PICK(a, b, 0, 4, 1, 5) + PICK(a, b, 2, 6, 3, 7), cd = PICK(c, d, 0, 4, 1, 5) + PICK(c, d, 2, 6, 3, 7);
    return PICK(ab, cd, 0, 1, 4, 5) + PICK(ab, cd, 2, 3, 6, 7);
}

/* out = the values along the path, weighed by their scores, in a few vectors of columns from `column` on. */
INLINE void mix(int vectors, int column, int head, int count, const int32_t *path, const float *values, size_t stride,
                const float *scores, int room, float *out) {
    vec sum[4] = {{0}, {0}, {0}, {0}};
    const float *score[4];
    for (int v = 0; v < vectors; v++) score[v] = scores + (size_t)((column + v * LANES) / head) * room;
    for (int j = 0; j < count; j++) {
        const float *value = values + path[j] * stride + column;
        for (int v = 0; v < vectors; v++) sum[v] += score[v][j] * load(value + v * LANES);
    }
    for (int v = 0; v < vectors; v++) store(out + column + v * LANES, sum[v]);
}

/* One node's query becomes what it finds along its path. `keys` holds each node's keys and then its values. */
FAST static void attend(int heads, int head, int count, const int32_t *path, const float *keys, float *query,
                        float *scores) {
    int attention = heads * head, room = padded(count);
    size_t stride = 2 * (size_t)attention;
    for (int j = 0; j < count; j += 4) {
        const float *key[4];
        for (int i = 0; i < 4; i++) key[i] = keys + path[j + i < count ? j + i : count - 1] * stride;
        for (int h = 0; h < heads; h++) {
            quad found = head == LANES ? dots(LANES, query, key, h * LANES) : dots(head, query, key, h * head);
            memcpy(scores + (size_t)h * room + j, &found, sizeof found);
        }
    }
    for (int h = 0; h < heads; h++) {
        float *own = scores + (size_t)h * room;
        for (int j = count; j < room; j++) own[j] = FAR_BELOW;
        softmax(room, own);
    }
    const float *values = keys + attention;
    for (int c = 0; c < attention; c += 4 * LANES) {
        switch ((attention - c) / LANES) {
        case 1: mix(1, c, head, count, path, values, stride, scores, room, query); break;
        case 2: mix(2, c, head, count, path, values, stride, scores, room, query); break;
        case 3: mix(3, c, head, count, path, values, stride, scores, room, query); break;
        default: mix(4, c, head, count, path, values, stride, scores, room, query);
        }
    }
}

#endif
