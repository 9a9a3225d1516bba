/* A plain scan of byte-packed codes: the number of rows whose code lies in an interval, in every column.

   It is the simplest program that counts rows of a table in memory, and a lower bound for any other. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 4096, MOST_COLUMNS = 64 };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define FAST __attribute__((target_clones("avx2", "default")))
#else
#define FAST
#endif

#define NARROW(NAME, TYPE)                                                                        \
    FAST static void NAME(uint8_t *keep, const TYPE *codes, TYPE low, TYPE span, int rows)        \
    {                                                                                             \
        for (int row = 0; row < rows; row++)                                                      \
            keep[row] &= (TYPE)(codes[row] - low) <= span;                                        \
    }
NARROW(narrow8, uint8_t)
NARROW(narrow16, uint16_t)
NARROW(narrow32, uint32_t)

FAST static int64_t total(const uint8_t *keep, int rows)
{
    int64_t sum = 0;
    for (int row = 0; row < rows; row++)
        sum += keep[row];
    return sum;
}

static int64_t scan(const Py_buffer *codes, const uint32_t *low, const uint32_t *span, int columns, int64_t rows)
{
    uint8_t keep[BLOCK];
    int64_t found = 0;
    for (int64_t first = 0; first < rows; first += BLOCK) {
        int size = rows - first < BLOCK ? (int)(rows - first) : BLOCK;
        memset(keep, 1, (size_t)size);
        for (int column = 0; column < columns; column++) {
            const char *start = (const char *)codes[column].buf + first * codes[column].itemsize;
            if (codes[column].itemsize == 1)
                narrow8(keep, (const uint8_t *)start, (uint8_t)low[column], (uint8_t)span[column], size);
            else if (codes[column].itemsize == 2)
                narrow16(keep, (const uint16_t *)(const void *)start, (uint16_t)low[column], (uint16_t)span[column], size);
            else
                narrow32(keep, (const uint32_t *)(const void *)start, low[column], span[column], size);
        }
        found += total(keep, size);
    }
    return found;
}

static PyObject *count(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *arrays, *lows, *highs;
    long long rows;
    if (!PyArg_ParseTuple(args, "O!O!O!L", &PyTuple_Type, &arrays, &PyTuple_Type, &lows, &PyTuple_Type, &highs, &rows))
        return NULL;
    Py_ssize_t columns = PyTuple_Size(arrays);
    if (columns > MOST_COLUMNS || PyTuple_Size(lows) != columns || PyTuple_Size(highs) != columns) {
        PyErr_SetString(PyExc_ValueError, "as many lows and highs as columns, and at most 64");
        return NULL;
    }
    Py_buffer codes[MOST_COLUMNS];
    uint32_t low[MOST_COLUMNS], span[MOST_COLUMNS];
    Py_ssize_t open = 0;
    PyObject *result = NULL;
    for (; open < columns; open++) {
        if (PyObject_GetBuffer(PyTuple_GetItem(arrays, open), &codes[open], PyBUF_ND | PyBUF_FORMAT) < 0)
            goto done;
        Py_ssize_t width = codes[open].itemsize;
        unsigned long first = PyLong_AsUnsignedLong(PyTuple_GetItem(lows, open));
        unsigned long last = PyLong_AsUnsignedLong(PyTuple_GetItem(highs, open));
        if (PyErr_Occurred() || (width != 1 && width != 2 && width != 4) || codes[open].len < rows * width || last < first
            || last > UINT32_MAX) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_ValueError, "codes of 1, 2 or 4 bytes, one a row, and low <= high");
            open++;
            goto done;
        }
        low[open] = (uint32_t)first;
        span[open] = (uint32_t)(last - first);
    }
    result = PyLong_FromLongLong(scan(codes, low, span, (int)columns, rows));
done:
    while (open > 0)
        PyBuffer_Release(&codes[--open]);
    return result;
}

static PyMethodDef methods[] = {
    {"count", count, METH_VARARGS, "count(arrays, lows, highs, rows): rows whose code is in [low, high] everywhere"},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_scan", "A scan of codes.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__scan(void)
{
    return PyModuleDef_Init(&module);
}
