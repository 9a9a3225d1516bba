/* Sparse counts of pairs, as SparseTable has them: the cells of each code of a column with many values. */
#ifndef COUNTLESS_SPARSE_PAIRS_H
#define COUNTLESS_SPARSE_PAIRS_H

#include <stdint.h>

#include "views.h"

typedef struct {
    int column, other, held;
    Py_buffer starts, codes, rows; /* where the cells of each code begin; the other code and the rows of each cell */
} SparseCells;

static void sparse_free(SparseCells *own) {
    if (own->held > 0) PyBuffer_Release(&own->starts);
    if (own->held > 1) PyBuffer_Release(&own->codes);
    if (own->held > 2) PyBuffer_Release(&own->rows);
}

/* One table from its tuple: (column, other, starts, codes, rows); `sizes` has how many codes each column has. */
static int read_sparse(PyObject *item, const Py_ssize_t *sizes, int columns, SparseCells *own) {
    PyObject *starts, *codes, *rows;
    if (!PyArg_ParseTuple(item, "iiOOO", &own->column, &own->other, &starts, &codes, &rows)) return 0;
    if (own->column < 0 || own->column >= columns || own->other < 0 || own->other >= columns) {
        PyErr_SetString(PyExc_ValueError, "a sparse table is of no columns");
        return 0;
    }
    if (!view_of(starts, &own->starts, "lq", sizes[own->column] + 1)) return 0;
    own->held = 1;
    if (!view_of(codes, &own->codes, "lq", -1)) return 0;
    own->held = 2;
    Py_ssize_t cells = own->codes.len / (Py_ssize_t)sizeof(int64_t);
    if (!view_of(rows, &own->rows, "lq", cells)) return 0;
    own->held = 3;
    const int64_t *start = own->starts.buf, *code = own->codes.buf;
    int good = start[0] == 0 && start[sizes[own->column]] == cells;
    for (Py_ssize_t c = 0; good && c < sizes[own->column]; c++) good = start[c] <= start[c + 1];
    for (Py_ssize_t c = 0; good && c < cells; c++) good = code[c] >= 0 && code[c] < sizes[own->other];
    if (!good) PyErr_SetString(PyExc_ValueError, "a sparse table does not fit its columns");
    return good;
}

#endif
