/* Sums, products and exponentials over padded rows of floats, a vector at a time.
 *
 * The functions marked FAST are compiled once for each of several instruction sets, and the loader takes the best.
 */
#ifndef COUNTLESS_ARITHMETIC_H
#define COUNTLESS_ARITHMETIC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef FAST /* a test compiles for one instruction set */
#elif defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__)
#define CLONES
#define FAST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FAST
#endif
#define INLINE static inline __attribute__((always_inline))

#define LANES 16 /* columns of a tile; every row is padded to a multiple of it */
#define TILE 6   /* rows of a tile */

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4)));

static inline int padded(int width) { return (width + LANES - 1) / LANES * LANES; }

INLINE vec load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}

INLINE void store(float *p, vec v) { memcpy(p, &v, sizeof v); }

INLINE vec relu(vec v) { return (vec)((ivec)v & (v > 0)); }

/* out[r] = init[from[r]] + in[r] @ w for a few rows and `tiles` tiles of columns side by side; w has `depth` rows. */
INLINE void tile(int rows, int tiles, const float *in, int in_stride, int depth, const float *w, int w_stride,
                 const float *init, int init_stride, const int32_t *from, float *out, int out_stride) {
    vec sum[2 * TILE];
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < tiles; t++) sum[r * tiles + t] = load(init + (size_t)from[r] * init_stride + t * LANES);
    for (int i = 0; i < depth; i++, w += w_stride) {
        for (int t = 0; t < tiles; t++) {
            vec weight = load(w + t * LANES);
            for (int r = 0; r < rows; r++) sum[r * tiles + t] += in[(size_t)r * in_stride + i] * weight;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int t = 0; t < tiles; t++) store(out + (size_t)r * out_stride + t * LANES, sum[r * tiles + t]);
}

/* The same for any number of rows and columns. Columns are computed in whole tiles, for which every row has room. Several
 * tiles are summed at a time as far as the registers go, because one sum waits for its last addition; with `wide` ones,
 * that hold a vector each, two tiles of all rows. */
INLINE void product_by(int wide, int rows, int columns, const float *in, int in_stride, int depth, const float *w,
                       int w_stride, const float *init, int init_stride, const int32_t *from, float *out,
                       int out_stride) {
#define SUM(rows, tiles)                                                                                               \
    tile(rows, tiles, a, in_stride, depth, w + c, w_stride, init + c, init_stride, from + r, o, out_stride)
    for (int c = 0, tiles; c < columns; c += tiles * LANES) {
        int beside = (columns - c + LANES - 1) / LANES;
        tiles = rows == 1 && beside >= 4 ? 4 : (wide || rows <= 3) && beside >= 2 ? 2 : 1;
        for (int r = 0; r < rows; r += TILE) {
            const float *a = in + (size_t)r * in_stride;
            float *o = out + (size_t)r * out_stride + c;
            switch (rows - r) {
            case 1: tiles == 4 ? SUM(1, 4) : tiles == 2 ? SUM(1, 2) : SUM(1, 1); break;
            case 2: tiles == 2 ? SUM(2, 2) : SUM(2, 1); break;
            case 3: tiles == 2 ? SUM(3, 2) : SUM(3, 1); break;
            case 4: wide && tiles == 2 ? SUM(4, 2) : SUM(4, 1); break;
            case 5: wide && tiles == 2 ? SUM(5, 2) : SUM(5, 1); break;
            default: wide && tiles == 2 ? SUM(TILE, 2) : SUM(TILE, 1);
            }
        }
    }
#undef SUM
}

#define PRODUCT(name, wide)                                                                                            \
static void name(int rows, int columns, const float *in, int in_stride, int depth, const float *w, int w_stride,       \
                 const float *init, int init_stride, const int32_t *from, float *out, int out_stride) {                \
    product_by(wide, rows, columns, in, in_stride, depth, w, w_stride, init, init_stride, from, out, out_stride);      \
}

#ifdef CLONES
FAST PRODUCT(product_in_any, 0)
__attribute__((target("arch=x86-64-v4"))) PRODUCT(product_in_wide, 1)

static int has_wide_registers(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

#define product(...) (has_wide_registers() ? product_in_wide(__VA_ARGS__) : product_in_any(__VA_ARGS__))
#elif defined(__AVX512F__)
PRODUCT(product, 1)
#else
FAST PRODUCT(product, 0)
#endif

/* e to the x, within two units in the last place; x at most 0. For vectors of any length. */
#define EXPONENTIAL(name, vec, ivec)                                                                                   \
INLINE vec name(vec x) {                                                                                               \
    const vec zero = {0};                                                                                              \
    vec low = zero - 87.0f;                                                                                            \
    x = (vec)(((ivec)x & (x > low)) | ((ivec)low & ~(x > low)));                                                       \
    vec shifted = x * 1.44269504f + 12582912.0f; /* the nearest integer ends up in the lowest bits */                  \
    ivec power = (ivec)shifted - 0x4B400000;                                                                           \
    vec whole = shifted - 12582912.0f;                                                                                 \
    vec r = x - whole * 0.693359375f;                                                                                  \
    r = r + whole * 2.12194440e-4f;                                                                                    \
    vec p = r * 1.9875691500e-4f + 1.3981999507e-3f;                                                                   \
    p = p * r + 8.3334519073e-3f;                                                                                      \
    p = p * r + 4.1665795894e-2f;                                                                                      \
    p = p * r + 1.6666665459e-1f;                                                                                      \
    p = p * r + 5.0000001201e-1f;                                                                                      \
    p = p * r * r + r + 1.0f;                                                                                          \
    return (vec)((ivec)p + (power << 23));                                                                             \
}

EXPONENTIAL(exponential, vec, ivec)

/* out = exp(logits - their maximum), of which the sum is returned. Logits of the padding are far below all others. */
FAST static double exponentials(int width, const float *logits, float *out) {
    vec most = load(logits);
    for (int c = LANES; c < width; c += LANES) {
        vec v = load(logits + c);
        most = (vec)(((ivec)v & (v > most)) | ((ivec)most & ~(v > most)));
    }
    float highest = most[0];
    for (int lane = 1; lane < LANES; lane++)
        if (most[lane] > highest) highest = most[lane];
    vec sum = {0};
    for (int c = 0; c < width; c += LANES) {
        vec e = exponential(load(logits + c) - highest);
        store(out + c, e);
        sum += e;
    }
    double total = 0;
    for (int lane = 0; lane < LANES; lane++) total += sum[lane];
    return total;
}

FAST static void add_rows(int rows, int columns, const float *init, int init_stride, const int32_t *from,
                          const float *table, int table_stride, const int32_t *which, float *out, int out_stride) {
    for (int r = 0; r < rows; r++) {
        const float *a = init + (size_t)from[r] * init_stride, *b = table + (size_t)which[r] * table_stride;
        for (int c = 0; c < columns; c += LANES) store(out + (size_t)r * out_stride + c, load(a + c) + load(b + c));
    }
}

/* units = relu(sums), where with `stream` the sums are first added to it, and it becomes them. */
FAST static void activate(int rows, int columns, float *sums, float *stream, int stride, float *units, int width) {
    for (int r = 0; r < rows; r++) {
        for (int c = 0; c < columns; c += LANES) {
            vec v = load(sums + (size_t)r * stride + c);
            if (stream) {
                v += load(stream + (size_t)r * stride + c);
                store(stream + (size_t)r * stride + c, v);
            }
            store(units + (size_t)r * width + c, relu(v));
        }
    }
}

#endif
