/* countless.engine._kernel: the compiled walks as a Python module. It checks what it is handed and keeps it alive. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "views.h"

#include "crossed.h"
#include "digits.h"
#include "evidence.h"
#include "pairs.h"
#include "posterior.h"
#include "question.h"
#include "row_sets.h"
#include "text_module.h"
#include "trace.h"
#include "walk.h"

typedef struct {
    Model model;
    Workspace *spare; /* touched only with the interpreter's lock held */
    Views views;
} Kernel;

static const char CAPSULE[] = "countless.engine._kernel";

static void kernel_free(Kernel *kernel) {
    while (kernel->spare) {
        Workspace *space = kernel->spare;
        kernel->spare = space->next;
        workspace_free(space);
    }
    views_free(&kernel->views);
    free(kernel->model.position);
    free(kernel->model.order);
    free(kernel->model.root);
    free((void *)kernel->model.weight);
    free((void *)kernel->model.bias);
    free(kernel);
}

static void capsule_free(PyObject *capsule) { kernel_free(PyCapsule_GetPointer(capsule, CAPSULE)); }

static int load_position(Kernel *kernel, PyObject *item, Position *position) {
    const Model *model = &kernel->model;
    PyObject *delta, *out, *out_bias, *tied, *bias;
    if (!PyArg_ParseTuple(item, "iipOOOOO", &position->size, &position->cut, &position->direct, &delta, &out, &out_bias,
                          &tied, &bias))
        return 0;
    if (position->size < 1 || position->cut < 0 || position->cut > model->hidden) {
        PyErr_SetString(PyExc_ValueError, "a position is out of range");
        return 0;
    }
    Py_ssize_t width = padded(position->direct ? position->size : model->features);
    position->delta = floats(&kernel->views, delta, (Py_ssize_t)(position->size + 1) * model->row);
    position->out = floats(&kernel->views, out, position->cut * width);
    position->out_bias = floats(&kernel->views, out_bias, width);
    if (!position->delta || !position->out || !position->out_bias) return 0;
    if (position->direct) return 1;
    position->tied = floats(&kernel->views, tied, (Py_ssize_t)model->features * padded(position->size));
    position->bias = floats(&kernel->views, bias, padded(position->size));
    return position->tied && position->bias;
}

/* The order of the positions: each once. */
static int load_order(Model *model, PyObject *order) {
    int good = PyTuple_Size(order) == model->positions;
    model->order = malloc(2 * ((size_t)model->positions + 1) * sizeof(int));
    if (!model->order) {
        PyErr_NoMemory();
        return 0;
    }
    model->rank = model->order + model->positions;
    for (int p = 0; p < model->positions; p++) model->rank[p] = -1;
    for (int place = 0; good && place < model->positions; place++) {
        long position = PyLong_AsLong(PyTuple_GetItem(order, place));
        good = position >= 0 && position < model->positions && model->rank[position] < 0;
        if (good) model->rank[model->order[place] = (int)position] = place;
    }
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the order does not have every position once");
    return good;
}

static int load_model(Kernel *kernel, PyObject *first, PyObject *units, PyObject *weights, PyObject *biases,
                      PyObject *positions, PyObject *order) {
    Model *model = &kernel->model;
    model->layers = (int)PyList_Size(weights);
    model->positions = (int)PyList_Size(positions);
    if (model->hidden < 1 || model->features < 1 || PyList_Size(biases) != model->layers) {
        PyErr_SetString(PyExc_ValueError, "the layers do not fit together");
        return 0;
    }
    model->row = padded(model->hidden) + LANES;
    kernel->views.room = 2 + 2 * model->layers + 5 * model->positions;
    kernel->views.view = calloc(kernel->views.room, sizeof(Py_buffer));
    model->position = calloc(model->positions, sizeof(Position));
    model->weight = calloc(model->layers + 1, sizeof(float *));
    model->bias = calloc(model->layers + 1, sizeof(float *));
    if (!kernel->views.view || !model->position || !model->weight || !model->bias) {
        PyErr_NoMemory();
        return 0;
    }
    model->first = floats(&kernel->views, first, model->row);
    model->units = floats(&kernel->views, units, (Py_ssize_t)(model->layers + 1) * model->row);
    if (!model->first || !model->units) return 0;
    for (int layer = 0; layer < model->layers; layer++) {
        model->weight[layer] = floats(&kernel->views, PyList_GetItem(weights, layer), (Py_ssize_t)model->hidden * model->row);
        model->bias[layer] = floats(&kernel->views, PyList_GetItem(biases, layer), model->row);
        if (!model->weight[layer] || !model->bias[layer]) return 0;
    }
    for (int p = 0; p < model->positions; p++)
        if (!load_position(kernel, PyList_GetItem(positions, p), &model->position[p])) return 0;
    if (!load_order(model, order)) return 0;
    int made = make_root(model);
    if (made < 0) PyErr_SetString(PyExc_ValueError, "the cuts do not rise in the model's order");
    if (made == 0) PyErr_NoMemory();
    return made > 0;
}

static PyObject *kernel_load(PyObject *self, PyObject *args) {
    (void)self;
    int hidden, features;
    PyObject *first, *units, *weights, *biases, *positions, *order;
    Kernel *kernel = calloc(1, sizeof(Kernel));
    if (!kernel) return PyErr_NoMemory();
    if (PyArg_ParseTuple(args, "iiOOOOOO!", &hidden, &features, &first, &units, &weights, &biases, &positions,
                         &PyTuple_Type, &order)) {
        kernel->model.hidden = hidden;
        kernel->model.features = features;
        if (!PyList_Check(weights) || !PyList_Check(biases) || !PyList_Check(positions))
            PyErr_SetString(PyExc_TypeError, "weights, biases and positions are lists");
        else if (load_model(kernel, first, units, weights, biases, positions, order))
            return PyCapsule_New(kernel, CAPSULE, capsule_free);
    }
    kernel_free(kernel);
    return NULL;
}

/* One step from its tuple; its buffers go to views. */
static int read_node(const Model *model, PyObject *item, Node *node, Py_buffer *views, int *held, int previous_depth) {
    PyObject *weights, *following, *hint;
    long long start;
    if (!PyArg_ParseTuple(item, "iipipLOOO", &node->position, &node->depth, &node->ends, &node->slot, &node->opens,
                          &start, &weights, &following, &hint))
        return 0;
    node->start = start;
    if (node->position < 0 || node->position >= model->positions || node->depth < 0 ||
        node->depth > previous_depth + 1 || node->slot < -1 || (node->slot < 0 && !node->opens)) {
        PyErr_SetString(PyExc_ValueError, "a step is out of range");
        return 0;
    }
    Py_ssize_t row = model->position[node->position].size + 1;
    if (!view_of(weights, &views[*held], "d", -1)) return 0;
    Py_ssize_t items = views[*held].len / (Py_ssize_t)sizeof(double);
    node->weights = views[(*held)++].buf;
    if (!view_of(following, &views[*held], "lq", items)) return 0;
    node->next = views[(*held)++].buf;
    node->states = items / row;
    if (items % row || node->states < 1) {
        PyErr_SetString(PyExc_ValueError, "a step's tables do not fit its position");
        return 0;
    }
    node->hint = NULL;
    if (hint != Py_None) {
        if (!view_of(hint, &views[*held], "d", row)) return 0;
        node->hint = views[(*held)++].buf;
    }
    return 1;
}

/* Units that the steps right below each node read. */
static void set_reach(const Model *model, Node *nodes, int count) {
    for (int n = 0; n < count; n++) {
        nodes[n].reach = 0;
        for (int m = n + 1; m < count && nodes[m].depth > nodes[n].depth; m++) {
            int cut = model->position[nodes[m].position].cut;
            if (nodes[m].depth == nodes[n].depth + 1 && cut > nodes[n].reach) nodes[n].reach = cut;
        }
    }
}

static Workspace *borrow(Kernel *kernel) {
    Workspace *space = kernel->spare;
    if (space) kernel->spare = space->next;
    return space ? space : calloc(1, sizeof(Workspace));
}

/* A workspace with room for a chain of so many steps; NULL if memory is short. */
static Workspace *space_for(Kernel *kernel, int steps) {
    Workspace *space = borrow(kernel);
    if (space && workspace_levels(space, steps + 1)) return space;
    if (space) workspace_free(space);
    return NULL;
}

static PyObject *answers_of(const Node *nodes, const Result *results, int count) {
    PyObject *answers = PyList_New(0);
    for (int n = 0; answers && n < count; n++) {
        if (!nodes[n].ends) continue;
        const Result *r = &results[n];
        PyObject *answer = Py_BuildValue("dOidd", r->density, r->exact ? Py_True : Py_False, r->most, r->rows, r->variance);
        if (!answer || PyList_Append(answers, answer) < 0) Py_CLEAR(answers);
        Py_XDECREF(answer);
    }
    return answers;
}

/* A workspace with room for these steps, and how many slots they need; NULL if memory is short. */
static Workspace *prepared(Kernel *kernel, Node *nodes, int count, int *slots) {
    int levels = 0;
    *slots = 0;
    for (int n = 0; n < count; n++) {
        if (nodes[n].slot >= *slots) *slots = nodes[n].slot + 1;
        if (nodes[n].depth >= levels) levels = nodes[n].depth + 1;
    }
    set_reach(&kernel->model, nodes, count);
    return space_for(kernel, levels);
}

static void give_space_back(Kernel *kernel, Workspace *space) {
    if (!space) return;
    if (workspace_buffers(space, 0) > MOST_KEPT) {
        workspace_free(space);
        return;
    }
    space->next = kernel->spare;
    kernel->spare = space;
}

static int walked(int status) {
    if (status == NO_MEMORY) PyErr_NoMemory();
    if (status == BAD_STATE) PyErr_SetString(PyExc_ValueError, "a filter's state is out of range");
    return status == DONE;
}

static PyObject *run(Kernel *kernel, Node *nodes, int count, int budget, double power, const double *offsets) {
    int slots, status = NO_MEMORY;
    Result *results = calloc(count, sizeof(Result));
    Workspace *space = prepared(kernel, nodes, count, &slots);
    if (results && space) {
        Py_BEGIN_ALLOW_THREADS;
        status = walk(&kernel->model, space, nodes, count, slots, budget, power, offsets, results);
        Py_END_ALLOW_THREADS;
    }
    give_space_back(kernel, space);
    PyObject *answers = walked(status) ? answers_of(nodes, results, count) : NULL;
    free(results);
    return answers;
}

static PyObject *bytes_of(const Buffer *buffer, int count, size_t item) {
    return PyBytes_FromStringAndSize(count ? buffer->data : NULL, (Py_ssize_t)(count * item));
}

/* What a trace has left in its workspace: (masses, [(parents, symbols) of each level], exact, most, rows). */
static PyObject *traced_of(const Workspace *space, int count, int expand, const Buffer *each) {
    int deepest = expand ? count : count - 1;
    const Level *last = &space->level[deepest];
    double rows = expand ? last->rows : last->rows + last->count;
    PyObject *levels = PyList_New(0), *masses = bytes_of(expand ? &last->mass : each, last->count, sizeof(double));
    for (int d = 1; levels && masses && d <= deepest; d++) {
        const Level *level = &space->level[d];
        PyObject *pair = Py_BuildValue("NN", bytes_of(&level->parent, level->count, sizeof(int32_t)),
                                       bytes_of(&level->symbol, level->count, sizeof(int32_t)));
        if (!pair || PyList_Append(levels, pair) < 0) Py_CLEAR(levels);
        Py_XDECREF(pair);
    }
    if (levels && masses)
        return Py_BuildValue("NNOid", masses, levels, last->thinned ? Py_False : Py_True, last->most, rows);
    Py_XDECREF(levels);
    Py_XDECREF(masses);
    return NULL;
}

static PyObject *run_trace(Kernel *kernel, Node *nodes, int count, const int64_t *budgets, double power,
                           const double *offsets, const int64_t *labelled, int expand, int scatter) {
    int slots, status = NO_MEMORY;
    Buffer each = {0};
    Workspace *space = prepared(kernel, nodes, count, &slots);
    if (space) {
        Py_BEGIN_ALLOW_THREADS;
        status = trace(&kernel->model, space, nodes, count, slots, budgets, power, offsets, labelled, expand, scatter,
                       &each);
        Py_END_ALLOW_THREADS;
    }
    PyObject *found = walked(status) ? traced_of(space, count, expand, &each) : NULL;
    give_space_back(kernel, space);
    free(each.data);
    return found;
}

/* Steps as they are handed over: read into nodes, with the buffers that they point to. */
typedef struct {
    Node *node;
    Py_buffer *view, offsets;
    int count, held, placed; /* placed: whether offsets are held too */
} Steps;

static void steps_free(Steps *steps) {
    for (int i = 0; i < steps->held; i++) PyBuffer_Release(&steps->view[i]);
    if (steps->placed) PyBuffer_Release(&steps->offsets);
    free(steps->view);
    free(steps->node);
}

static int read_steps(const Kernel *kernel, PyObject *list, int budget, PyObject *offsets, Steps *steps) {
    *steps = (Steps){0};
    if (!PyList_Check(list) || budget < 1) {
        PyErr_SetString(PyExc_ValueError, "steps are a list, and the budget is at least 1");
        return 0;
    }
    steps->count = (int)PyList_Size(list);
    steps->node = calloc(steps->count + 1, sizeof(Node));
    steps->view = calloc(3 * (size_t)steps->count + 1, sizeof(Py_buffer));
    if (!steps->node || !steps->view) {
        PyErr_NoMemory();
        return 0;
    }
    steps->placed = view_of(offsets, &steps->offsets, "d", -1);
    if (!steps->placed) return 0;
    int deepest = -1;
    for (int n = 0; n < steps->count; n++) {
        Node *node = &steps->node[n];
        int depth = n ? steps->node[n - 1].depth : -1;
        if (!read_node(&kernel->model, PyList_GetItem(list, n), node, steps->view, &steps->held, depth)) return 0;
        if (node->depth > deepest) deepest = node->depth;
    }
    if (deepest < (int)(steps->offsets.len / (Py_ssize_t)sizeof(double))) return 1;
    PyErr_SetString(PyExc_ValueError, "there are fewer offsets than steps");
    return 0;
}

static PyObject *kernel_walk(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *list, *offsets, *answers = NULL;
    int budget;
    double power;
    if (!PyArg_ParseTuple(args, "OidOO", &capsule, &budget, &power, &offsets, &list)) return NULL;
    Kernel *kernel = PyCapsule_GetPointer(capsule, CAPSULE);
    Steps steps;
    if (!kernel) return NULL;
    if (read_steps(kernel, list, budget, offsets, &steps))
        answers = run(kernel, steps.node, steps.count, budget, power, steps.offsets.buf);
    steps_free(&steps);
    return answers;
}

/* ask(model, crossed, star, budget, most, target, power, offsets, again, rare) -> (density, exact, particles, visited,
 * rows, variance, [(filters, counted, found, rows) of each part]): see Counts.answers and adaptive. */
static PyObject *kernel_ask(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *filters, *rays, *offsets[2], *answer = NULL;
    Effort effort;
    Py_buffer views[2];
    int held = 0;
    if (!PyArg_ParseTuple(args, "OOOiiddOOd", &capsule, &filters, &rays, &effort.budget, &effort.most, &effort.target,
                          &effort.power, &offsets[0], &offsets[1], &effort.rare))
        return NULL;
    Kernel *kernel = PyCapsule_GetPointer(capsule, CAPSULE);
    const Crossed *crossed = kernel ? PyCapsule_GetPointer(filters, CROSSED) : NULL;
    if (!crossed || !check_filters(&kernel->model, crossed)) return NULL;
    int around[crossed->count];
    Part star, parts[MOST_PARTS];
    if (!read_star(rays, crossed, around, &star)) return NULL;
    while (held < 2 && view_of(offsets[held], &views[held], "d", kernel->model.positions)) held++;
    if (held == 2 && effort.budget < 1) PyErr_SetString(PyExc_ValueError, "the budget is at least 1");
    if (held == 2 && effort.budget > 0) {
        Plan plan = {0};
        Result result;
        int count = 0, status = NO_MEMORY;
        effort.offsets = views[0].buf;
        effort.again = views[1].buf;
        int possible = 1;
        for (int i = 0; i < crossed->count * crossed->count; i++) possible &= crossed->most[i] > 0;
        star.hinted = possible;
        Workspace *space = space_for(kernel, kernel->model.positions);
        if (space && make_plan(&kernel->model, crossed, NULL, crossed->count, possible, &plan)) {
            Py_BEGIN_ALLOW_THREADS;
            status = answer_question(&kernel->model, space, crossed, &effort, &star, &plan, &result, parts, &count);
            Py_END_ALLOW_THREADS;
        }
        give_space_back(kernel, space);
        if (walked(status)) answer = question_answer(&plan, &result, parts, count);
        plan_free(&plan);
    }
    while (held--) PyBuffer_Release(&views[held]);
    return answer;
}

/* The numbers of particles that the steps keep: each at least 1. */
static int read_budgets(PyObject *array, int count, Py_buffer *budgets) {
    if (!view_of(array, budgets, "lq", count)) return 0;
    const int64_t *budget = budgets->buf;
    int good = 1;
    for (int n = 0; n < count; n++) good &= budget[n] >= 1 && budget[n] < INT32_MAX;
    if (good) return 1;
    PyErr_SetString(PyExc_ValueError, "the budget is at least 1");
    PyBuffer_Release(budgets);
    return 0;
}

static PyObject *kernel_trace(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *capsule, *list, *offsets, *labelled, *particles, *found = NULL;
    int expand, scatter, chain = 1;
    double power;
    if (!PyArg_ParseTuple(args, "OOdOOOpp", &capsule, &particles, &power, &offsets, &list, &labelled, &expand, &scatter))
        return NULL;
    Kernel *kernel = PyCapsule_GetPointer(capsule, CAPSULE);
    Steps steps;
    Py_buffer labels, budgets;
    if (!kernel) return NULL;
    if (read_steps(kernel, list, 1, offsets, &steps)) {
        for (int n = 0; n < steps.count; n++) chain &= steps.node[n].depth == n;
        if (!chain || !steps.count)
            PyErr_SetString(PyExc_ValueError, "a trace takes the steps of one question");
        else if (view_of(labelled, &labels, "lq", steps.count)) {
            if (read_budgets(particles, steps.count, &budgets)) {
                found = run_trace(kernel, steps.node, steps.count, budgets.buf, power, steps.offsets.buf, labels.buf,
                                  expand, scatter);
                PyBuffer_Release(&budgets);
            }
            PyBuffer_Release(&labels);
        }
    }
    steps_free(&steps);
    return found;
}

static PyMethodDef METHODS[] = {
    {"load", kernel_load, METH_VARARGS, "load(hidden, features, first, units, weights, biases, positions, order) -> model"},
    {"walk", kernel_walk, METH_VARARGS, "walk(model, budget, power, offsets, steps) -> [(density, exact, most, rows, variance)]"},
    {"trace", kernel_trace, METH_VARARGS,
     "trace(model, budgets, power, offsets, steps, labelled, expand, scatter) -> (masses, [(parents, symbols)], exact, most, rows)"},
    {"marked_sum", evidence_sum, METH_VARARGS, "marked_sum(numbers, marks) -> the sum of the numbers that are marked"},
    {"common_rows", row_sets_common, METH_O, "common_rows([bits of each set]) -> rows in all sets"},
    {"first_two", row_sets_first_two, METH_VARARGS, "first_two(codes, order, out): the first two rows of each code"},
    {"evidence", evidence_count, METH_VARARGS, "evidence([(codes, allowed)], rows, marks or None) -> rows in all sets"},
    {"ask", kernel_ask, METH_VARARGS,
     "ask(model, crossed, star, budget, most, target, power, offsets, again, rare) -> (density, exact, particles, visited, rows, variance, parts)"},
    {"digits", digit_tables, METH_VARARGS, "digits(weights, radices, listed) -> [(weights, next)]"},
    {"pairs", pairs_load, METH_VARARGS, "pairs(before, known, members, rows, [(place, counts, starts, first)], sparse) -> tables"},
    {"reading", pairs_reading, METH_VARARGS,
     "reading(tables, column, weights, positions, radices, free, listed) -> (reading, most, values, parts)"},
    {"cross", pairs_cross, METH_O, "cross(readings) -> (crossed, least, most, one, two, counted, stars)"},
    {"crossed", pairs_crossed, METH_O, "crossed(crossed) -> (most, least, shares)"},
    {"posterior", posterior_find, METH_VARARGS,
     "posterior(hits, rows, total, least, most, errors, answer, counts, below) -> how many counts"},
    {"text_load", text_load, METH_VARARGS, "text_load(sizes, grams, arrays) -> model"},
    {"text_tree", text_tree, METH_VARARGS, "text_tree(model, base, shifts, starts) -> tree"},
    {"text_extend", text_extend, METH_VARARGS, "text_extend(tree, parents, tokens, positions, out) -> size"},
    {"text_roots", text_roots, METH_VARARGS, "text_roots(tree, out)"},
    {"text_places", text_places, METH_VARARGS, "text_places(tree, contexts, out)"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef MODULE = {PyModuleDef_HEAD_INIT, "_kernel", "The compiled walks.", -1, METHODS,
                                    NULL,                  NULL,      NULL,                         NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModule_Create(&MODULE); }
