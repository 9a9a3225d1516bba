/* The parts of a Transformer: linear maps in panels, normalisation, and attention along a path.
 *
 * They compute in pieces of a vector. A compiler keeps a piece in one register of whatever it compiles for, where it
 * would keep a whole vector in memory on machines whose registers are shorter.
 */
#ifndef COUNTLESS_ATTENTION_H
#define COUNTLESS_ATTENTION_H

#include <math.h>

#include "arithmetic.h"

#if defined(CLONES) || defined(__AVX2__)
#define PIECE 8
#else
#define PIECE 4
#endif
#define PIECES (LANES / PIECE)
#define UNROLLED _Pragma("GCC unroll 16")

typedef float piece __attribute__((vector_size(PIECE * sizeof(float))));
typedef int32_t ipiece __attribute__((vector_size(PIECE * sizeof(int32_t))));
typedef float piece_at __attribute__((vector_size(PIECE * sizeof(float)), aligned(4), may_alias)); /* in memory */

/* Four floats: every instruction set can shuffle them. */
typedef float quad __attribute__((vector_size(16)));
typedef int32_t iquad __attribute__((vector_size(16)));
typedef float quad_at __attribute__((vector_size(16), aligned(4), may_alias));

#if defined(__clang__)
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (iquad){i, j, k, l})
#endif

#define FAR_BELOW -1e30f

INLINE piece get(const float *p) { return *(const piece_at *)p; }

INLINE void put(float *p, piece v) { *(piece_at *)p = v; }

EXPONENTIAL(exponential_piece, piece, ipiece)

INLINE quad load4(const float *p) { return *(const quad_at *)p; }

INLINE float total_of(piece v) {
    float sum = 0;
    UNROLLED
    for (int lane = 0; lane < PIECE; lane++) sum += v[lane];
    return sum;
}

/* The scores become probabilities. Those of the padding are far below all others. */
INLINE void softmax(int width, float *scores) {
    piece most = get(scores), sum = {0};
    for (int c = PIECE; c < width; c += PIECE) {
        piece v = get(scores + c);
        most = (piece)(((ipiece)v & (v > most)) | ((ipiece)most & ~(v > most)));
    }
    float highest = most[0];
    for (int lane = 1; lane < PIECE; lane++) highest = most[lane] > highest ? most[lane] : highest;
    for (int c = 0; c < width; c += PIECE) {
        piece e = exponential_piece(get(scores + c) - highest);
        put(scores + c, e);
        sum += e;
    }
    float scale = 1.0f / total_of(sum);
    for (int c = 0; c < width; c += PIECE) put(scores + c, get(scores + c) * scale);
}

/* out = (in - its mean) / its deviation, row by row. The padding is 0 and stays so. */
FAST static void normalise(int rows, int width, const float *in, float *out, int stride) {
    for (int r = 0; r < rows; r++, in += stride, out += stride) {
        piece sum = {0}, squares = {0};
        for (int c = 0; c < stride; c += PIECE) sum += get(in + c);
        float mean = total_of(sum) / width;
        for (int c = 0; c < stride; c += PIECE) put(out + c, get(in + c) - mean);
        for (int c = width; c < stride; c++) out[c] = 0;
        for (int c = 0; c < stride; c += PIECE) squares += get(out + c) * get(out + c);
        float scale = 1.0f / sqrtf(total_of(squares) / width + 1e-5f);
        for (int c = 0; c < stride; c += PIECE) put(out + c, get(out + c) * scale);
    }
}

/* ---- linear maps ---- */

enum { SET, RELU, ADD };

/* out = in @ w + bias for a few rows and panels; a panel is LANES columns of w, (depth, LANES) in one piece. */
INLINE void panel(int rows, int panels, const float *in, int in_stride, int depth, const float *w, const float *bias,
                  int mode, float *out, int out_stride) {
    const int pieces = panels * PIECES;
    piece sum[TILE * PIECES];
    UNROLLED
    for (int r = 0; r < rows; r++) {
        UNROLLED
        for (int p = 0; p < pieces; p++) sum[r * pieces + p] = get(bias + p * PIECE);
    }
    for (int i = 0; i < depth; i++) {
        piece weight[4 * PIECES];
        UNROLLED
        for (int p = 0; p < pieces; p++)
            weight[p] = get(w + ((size_t)(p / PIECES) * depth + i) * LANES + p % PIECES * PIECE);
        UNROLLED
        for (int r = 0; r < rows; r++) {
            float x = in[(size_t)r * in_stride + i];
            UNROLLED
            for (int p = 0; p < pieces; p++) sum[r * pieces + p] += x * weight[p];
        }
    }
    UNROLLED
    for (int r = 0; r < rows; r++) {
        UNROLLED
        for (int p = 0; p < pieces; p++) {
            float *o = out + (size_t)r * out_stride + p * PIECE;
            piece v = sum[r * pieces + p];
            if (mode == RELU) v = (piece)((ipiece)v & (v > 0));
            if (mode == ADD) v += get(o);
            put(o, v);
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

#define AHEAD 8 /* nodes that are fetched before they are read */

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
    const int pieces = vectors * PIECES;
    piece sum[4 * PIECES];
    const float *score[4];
    UNROLLED
    for (int p = 0; p < pieces; p++) sum[p] = (piece){0};
    UNROLLED
    for (int v = 0; v < vectors; v++) score[v] = scores + (size_t)((column + v * LANES) / head) * room;
    for (int j = 0; j < count; j++) {
        const float *value = values + path[j] * stride + column;
        UNROLLED
        for (int p = 0; p < pieces; p++) sum[p] += score[p / PIECES][j] * get(value + p * PIECE);
    }
    UNROLLED
    for (int p = 0; p < pieces; p++) put(out + column + p * PIECE, sum[p]);
}

/* One node's query becomes what it finds along its path. `keys` holds each node's keys and then its values. */
FAST static void attend(int heads, int head, int count, const int32_t *path, const float *keys, float *query,
                        float *scores) {
    int attention = heads * head, room = padded(count);
    size_t stride = 2 * (size_t)attention;
    for (int j = 0; j < count; j += 4) {
        const float *key[4];
        for (int i = j + AHEAD; i < j + AHEAD + 4 && i < count; i++) /* nodes of a path lie far apart: ask for them early */
            for (size_t c = 0; c < stride; c += 64 / sizeof(float)) __builtin_prefetch(keys + path[i] * stride + c);
        for (int i = 0; i < 4; i++) key[i] = keys + path[j + i < count ? j + i : count - 1] * stride;
        for (int h = 0; h < heads; h++) {
            quad found = head == LANES ? dots(LANES, query, key, h * LANES) : dots(head, query, key, h * head);
            *(quad_at *)(scores + (size_t)h * room + j) = found;
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
