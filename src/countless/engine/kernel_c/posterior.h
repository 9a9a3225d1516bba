/* The posterior of a count. Its definition is the NumPy code in estimator/calibration/posterior.py. */
#ifndef COUNTLESS_POSTERIOR_H
#define COUNTLESS_POSTERIOR_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arithmetic.h"
#include "views.h"

#define AROUND 61
#define BETWEEN 121
#define STRATA 5
#define REACH 6.0
#define LEAST_COUNT 0.5
#define LEAST_WIDTH 0.03
#define DOUBT 0.05

static const double STRATUM[STRATA] = {-1.282, -0.524, 0.0, 0.524, 1.282};

typedef struct {
    double hits, rows, total;
} Sample;

/* The logarithm of a positive normal number: 2 artanh((m - 1) / (m + 1)) of its mantissa m between sqrt(1/2) and sqrt(2). */
INLINE double fast_log(double x) {
    uint64_t bits, root = 0x3fe6a09e667f3bcdu, exponent;
    double mantissa, power;
    memcpy(&bits, &x, 8);
    bits += 0x3ff0000000000000u - root;
    exponent = (bits >> 52) | 0x4330000000000000u; /* as the last bits of 2^52 */
    bits = (bits & 0x000fffffffffffffu) + root;
    memcpy(&mantissa, &bits, 8);
    memcpy(&power, &exponent, 8);
    power -= 4503599627370496.0 + 1023.0;
    double s = (mantissa - 1.0) / (mantissa + 1.0), z = s * s;
    double series = 1.0 / 23;
    for (int n = 21; n > 1; n -= 2) series = series * z + 1.0 / n;
    return power * 0.69314718055994529 + (2.0 * s + 2.0 * s * z * series);
}

/* The exponential of a number up to 700; below -700 it is that of -700. */
INLINE double fast_exp(double x) {
    x = x < -700.0 ? -700.0 : x;
    double shifted = x * 1.4426950408889634 + 6755399441055744.0, whole = shifted - 6755399441055744.0;
    double r = x - whole * 0.693147180369123816490 - whole * 1.90821492927058770002e-10;
    uint64_t bits;
    memcpy(&bits, &shifted, 8);
    bits = (bits + 1023) << 52;
    double scale, series = 1.0;
    memcpy(&scale, &bits, 8);
    for (int n = 14; n > 0; n--) series = 1.0 + series * r * (1.0 / n);
    return series * scale;
}

/* As log_factorial. */
INLINE double fast_log_factorial(double n) {
    double shifted = n + 8.0, inverse = 1.0 / shifted, square = n * (n + 9.0);
    double series = inverse * (1.0 / 12 - inverse * inverse * (1.0 / 360 - inverse * inverse * (1.0 / 1260)));
    double whole = (shifted + 0.5) * fast_log(shifted) - shifted + 0.91893853320467274 + series;
    return whole - fast_log((square + 8.0) * (square + 14.0) * (square + 18.0) * (square + 20.0));
}

/* The logarithm of the chance of the hits for each count, but for a constant; impossible ones are -HUGE_VAL. */
FAST static void chances_of(Sample sample, int count, const double *counts, double *out) {
    double hits = sample.hits, misses = sample.rows - sample.hits;
    for (int i = 0; i < count; i++) {
        double others = sample.total - counts[i];
        double here = counts[i] > hits ? counts[i] : hits, there = others > misses ? others : misses;
        double found = fast_log_factorial(here) - fast_log_factorial(here - hits) + fast_log_factorial(there) -
                       fast_log_factorial(there - misses);
        out[i] = (counts[i] >= hits) & (others >= misses) ? found : -HUGE_VAL;
    }
}

FAST static void scale_weights(int count, const double *chances, double top, double *weights) {
    for (int i = 0; i < count; i++) weights[i] *= chances[i] == -HUGE_VAL ? 0.0 : fast_exp(chances[i] - top);
}

/* The density of smoothed errors at one logarithm of a count. */
FAST static double density_at(double log, int errors, const double *error, double centre, double width) {
    double sum = 0.0;
    for (int i = 0; i < errors; i++) {
        double away = (log - (centre + error[i])) / width;
        sum += fast_exp(-(away * away) / 2.0);
    }
    return sum / errors / (width * sqrt(2.0 * 3.14159265358979323846));
}

static int by_size(const void *one, const void *two) {
    double a = *(const double *)one, b = *(const double *)two;
    return (a > b) - (a < b);
}

static double quantile_of(const double *rising, int count, double share) {
    double place = share * (count - 1);
    int below = (int)place < count - 1 ? (int)place : count - 1, above = below + 1 < count ? below + 1 : count - 1;
    return rising[below] + (place - below) * (rising[above] - rising[below]);
}

/* How far each of the sorted errors is smoothed: Silverman's rule. */
static double width_of(const double *error, int count) {
    double mean = 0.0, square = 0.0;
    for (int i = 0; i < count; i++) mean += error[i] / count;
    for (int i = 0; i < count; i++) square += (error[i] - mean) * (error[i] - mean);
    double spread = sqrt(square / count);
    double middle = (quantile_of(error, count, 0.75) - quantile_of(error, count, 0.25)) / 1.34;
    double width = 0.9 * (spread < middle ? spread : middle) * pow(count, -0.2);
    return width > LEAST_WIDTH ? width : LEAST_WIDTH;
}

/* The ends of the logarithms of counts near what hits alone say. */
static void reach_of(Sample s, double *low, double *high) {
    double least = log(LEAST_COUNT);
    if (s.rows == 0) {
        *low = least, *high = log(s.total > 1.0 ? s.total : 1.0);
        return;
    }
    double share = s.rows / s.total, many = s.hits + 0.5;
    double variance = many * (1.0 - share) * (1.0 - s.hits / s.rows);
    double deviation = sqrt(variance > 0.25 ? variance : 0.25);
    double from = many - REACH * deviation, floor = LEAST_COUNT * share;
    *low = log((from > floor ? from : floor) / share);
    *high = log((many + REACH * deviation + (s.hits < 10 ? 4.0 : 0.0)) / share);
    if (*low < least) *low = least;
    if (*high > log(s.total)) *high = log(s.total);
}

/* Logarithms of counts, rising, with weights: those around the hits, merged with the smoothed errors if there are any. */
static int merged(Sample sample, int errors, const double *error, double centre, double width, double *logs,
                  double *weights) {
    double low, high, doubt = DOUBT / log(sample.total > 3.0 ? sample.total : 3.0);
    reach_of(sample, &low, &high);
    double each = (high - low) / AROUND, step = 1.0 / (AROUND - 1), point = errors ? (1.0 - DOUBT) / (errors * STRATA) : 0.0;
    int next[STRATA] = {0}, count = 0, total = errors * STRATA + AROUND;
    for (int around = 0; count < total; count++) {
        double best = around < AROUND ? low + (high - low) * (around * step) : HUGE_VAL;
        int from = -1;
        for (int s = 0; s < STRATA; s++) {
            if (next[s] == errors) continue;
            double log = centre + error[next[s]] + width * STRATUM[s];
            if (log < best) best = log, from = s;
        }
        logs[count] = best;
        if (from >= 0) {
            next[from]++;
            weights[count] = point;
        } else {
            around++;
            weights[count] = errors ? doubt * each : each * exp((best - high) / 2.0);
        }
    }
    return count;
}

/* Counts and the probability up to each, from `errors` sorted errors around the logarithm `centre`. Returns how many. */
static int find_posterior(Sample s, int errors, const double *error, double centre, double least, double most,
                          double *counts, double *below, double *weights) {
    double width = errors ? width_of(error, errors) : 1.0;
    int all = merged(s, errors, error, centre, width, below, weights), first = 0, end, count;
    double from = least > s.hits ? least : s.hits, to = s.total - s.rows + s.hits;
    if (from < LEAST_COUNT) from = LEAST_COUNT;
    if (most < to) to = most;
    if (to < LEAST_COUNT) to = LEAST_COUNT;
    if (to < from) to = from;
    for (int i = 0; i < all; i++) counts[i] = exp(below[i]);
    while (first < all && counts[first] < from) first++;
    for (end = first; end < all && counts[end] <= to;) end++;
    count = end - first;
    if (2 * count >= all) {
        memmove(counts, counts + first, count * sizeof(double));
        memmove(weights, weights + first, count * sizeof(double));
    } else {
        double low = count ? below[first] : log(from), high = count ? below[end - 1] : log(to);
        double doubt = DOUBT / log(s.total > 3.0 ? s.total : 3.0);
        low = low - 1.0 > log(from) ? low - 1.0 : log(from);
        high = high + 1.0 < log(to) ? high + 1.0 : log(to);
        count = BETWEEN;
        for (int i = 0; i < count; i++) {
            double log = i == count - 1 ? high : low + i * ((high - low) / (count - 1));
            counts[i] = exp(log);
            weights[i] = errors ? (1.0 - DOUBT) * density_at(log, errors, error, centre, width) + doubt
                                : exp((log - high) / 2.0);
        }
    }
    double top = -HUGE_VAL, sum = 0.0;
    chances_of(s, count, counts, below);
    for (int i = 0; i < count; i++) top = below[i] > top ? below[i] : top;
    if (top != -HUGE_VAL) scale_weights(count, below, top, weights);
    for (int i = 0; i < count; i++) {
        sum += weights[i];
        below[i] = sum - weights[i] / 2.0;
    }
    for (int i = 0; i < count; i++) below[i] /= sum;
    return count;
}

static PyObject *posterior_find(PyObject *self, PyObject *args) {
    (void)self;
    Sample sample;
    double answer, least, most;
    PyObject *given, *out_counts, *out_below, *found = NULL;
    Py_buffer errors, counts, below;
    if (!PyArg_ParseTuple(args, "dddddOdOO", &sample.hits, &sample.rows, &sample.total, &least, &most, &given, &answer,
                          &out_counts, &out_below))
        return NULL;
    if (!view_of(given, &errors, "d", -1)) return NULL;
    int many = (int)(errors.len / (Py_ssize_t)sizeof(double)), room = many * STRATA + AROUND;
    if (room < BETWEEN) room = BETWEEN;
    double *own = malloc((size_t)(many + room) * sizeof(double));
    if (!own) PyErr_NoMemory();
    if (own && view_of_output(out_counts, &counts, "d", room)) {
        if (view_of_output(out_below, &below, "d", room)) {
            memcpy(own, errors.buf, errors.len);
            qsort(own, many, sizeof(double), by_size);
            int count = find_posterior(sample, many, own, log(answer > 1.0 ? answer : 1.0), least, most, counts.buf,
                                       below.buf, own + many);
            found = PyLong_FromLong(count);
            PyBuffer_Release(&below);
        }
        PyBuffer_Release(&counts);
    }
    free(own);
    PyBuffer_Release(&errors);
    return found;
}

#endif
