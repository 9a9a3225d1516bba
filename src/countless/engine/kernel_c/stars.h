/* Filters around a column with many values, on sparse counts of pairs. The readable twin is WideColumns in
 * ../fusion/wide_columns.py. */
#ifndef COUNTLESS_STARS_H
#define COUNTLESS_STARS_H

#include "pairs.h"

#define FEW_CODES 64 /* as in ../fusion/wide_columns.py */

/* A filter on the other column of a table, and what it keeps of each code of the wide column, if that was summed. */
typedef struct {
    int filter;
    const SparseCells *cells;
    const Reading *reading;
    const CodeSums *sums;
} Ray;

/* The rows of a code of a wide column that a filter keeps: at most, at least, and about. */
typedef struct {
    int64_t most, least;
    double mean;
} Kept;

typedef struct {
    int64_t most, least;
    double rows;
} Star;

INLINE Kept cells_of(const SparseCells *cells, const Reading *filter, int64_t code) {
    const int64_t *start = cells->starts.buf, *other = cells->codes.buf, *rows = cells->rows.buf;
    Kept kept = {0, 0, 0.0};
    if (filter->weights.itemsize == 1) {
        const uint8_t *allowed = filter->weights.buf;
        for (int64_t c = start[code]; c < start[code + 1]; c++) kept.most += rows[c] & -(int64_t)(allowed[other[c]] != 0);
        kept.least = kept.most;
        kept.mean = (double)kept.most;
        return kept;
    }
    const double *weight = filter->weights.buf;
    for (int64_t c = start[code]; c < start[code + 1]; c++) {
        double own = weight[other[c]];
        kept.most += rows[c] & -(int64_t)(own > 0);
        kept.least += rows[c] & -(int64_t)(own == 1);
        kept.mean += (double)rows[c] * own;
    }
    return kept;
}

INLINE Kept kept_of(const Ray *ray, int64_t code) {
    if (ray->sums) return ((const Kept *)ray->sums->kept)[code];
    return cells_of(ray->cells, ray->reading, code);
}

/* What a filter keeps of every code, summed once while it is one of the last that asked; NULL if memory is short. */
static const CodeSums *sums_of(PairTables *tables, const SparseCells *cells, const Reading *filter, int64_t codes) {
    CodeSums *oldest = tables->sums;
    for (CodeSums *own = tables->sums; own < tables->sums + MOST_SUMS; own++) {
        if (own->cells == cells && own->filter == filter->number) {
            own->asked = ++tables->asked;
            return own;
        }
        if (own->asked < oldest->asked) oldest = own;
    }
    Kept *kept = malloc((size_t)(codes + 1) * sizeof(Kept));
    if (!kept) return NULL;
    for (int64_t code = 0; code < codes; code++) kept[code] = cells_of(cells, filter, code);
    free(oldest->kept);
    *oldest = (CodeSums){cells, filter->number, ++tables->asked, kept};
    return oldest;
}

/* The first code from `code` on that a filter allows; -1 if there is none. */
static int64_t next_code(const Reading *own, int64_t code) {
    int64_t codes = own->column->codes;
    if (own->weights.itemsize == 1) {
        const char *all = own->weights.buf, *next = memchr(all + code, 1, (size_t)(codes - code));
        return next ? next - all : -1;
    }
    const double *weight = own->weights.buf;
    while (code < codes && weight[code] == 0) code++;
    return code < codes ? code : -1;
}

/* One code of the wide column, of which a filter keeps `weight`, in each star and in that of all rays. */
static void add_code(const Ray *rays, int count, int64_t code, int64_t all_rows, double weight, Star *stars) {
    int64_t most = INT64_MAX, least = 0;
    double share = 1.0, all = all_rows > 1 ? (double)all_rows : 1.0;
    for (int r = 0; r < count; r++) {
        Kept kept = kept_of(&rays[r], code);
        stars[r].most += kept.most;
        stars[r].least += weight == 1.0 ? kept.least : 0;
        stars[r].rows += weight * kept.mean;
        most = kept.most < most ? kept.most : most;
        least += kept.least;
        share = r ? share * (kept.mean / all) : kept.mean / all;
    }
    least -= (count - 1) * all_rows;
    least = least > 0 ? least : 0;
    double mean = weight * (double)all_rows * share;
    if (weight == 1.0) mean = mean < (double)least ? (double)least : mean > (double)most ? (double)most : mean;
    stars[count].most += most;
    stars[count].least += weight == 1.0 ? least : 0;
    stars[count].rows += mean;
}

static int add_star(PyObject *list, int centre, const Ray *rays, int count, Star star) {
    PyObject *places = PyTuple_New(count + 1);
    if (!places) return 0;
    PyTuple_SetItem(places, 0, PyLong_FromLong(centre));
    for (int r = 0; r < count; r++) PyTuple_SetItem(places, r + 1, PyLong_FromLong(rays[r].filter));
    double rows = count > 1 && star.least >= star.most ? (double)star.least : star.rows;
    PyObject *item = Py_BuildValue("NdLL", places, rows, (long long)star.least, (long long)star.most);
    int done = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

/* The stars around the filter at `centre`: with each of its rays, and with all. */
static int stars_around(PairTables *tables, Reading *const *filters, int count, int centre, PyObject *list) {
    const Reading *own = filters[centre];
    const int64_t *all_rows = own->column->counts.buf;
    int column = (int)(own->column - tables->column), held = 0;
    Ray rays[count];
    Star stars[count + 1];
    for (int f = 0; f < count; f++)
        for (int t = 0; t < tables->sparse_count; t++) {
            const SparseCells *cells = &tables->sparse[t];
            if (cells->column == column && &tables->column[cells->other] == filters[f]->column)
                rays[held++] = (Ray){f, cells, filters[f], NULL};
        }
    if (!held) return 1;
    memset(stars, 0, sizeof stars);
    for (int r = 0; own->values > FEW_CODES && held <= MOST_SUMS && r < held; r++)
        if (!(rays[r].sums = sums_of(tables, rays[r].cells, rays[r].reading, own->column->codes))) return 0;
    for (int64_t code = next_code(own, 0); code >= 0; code = next_code(own, code + 1))
        add_code(rays, held, code, all_rows[code], weight_of(&own->weights, code), stars);
    for (int r = 0; r < held; r++)
        if (!add_star(list, centre, &rays[r], 1, stars[r])) return 0;
    return held == 1 || add_star(list, centre, rays, held, stars[held]);
}

/* [(places, rows, least, most)] of some filters, each on another column; NULL is an error. */
static PyObject *stars_of(PairTables *tables, Reading *const *filters, int count) {
    PyObject *list = PyList_New(0);
    int done = list != NULL;
    for (int f = 0; done && tables->sparse_count && count > 1 && f < count; f++)
        done = !filters[f]->column->wide || stars_around(tables, filters, count, f, list);
    if (done) return list;
    if (!PyErr_Occurred()) PyErr_NoMemory();
    Py_XDECREF(list);
    return NULL;
}

#endif
