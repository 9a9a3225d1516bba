/* One question from its filters to its answer: the steps, the hints, the walk, and the parts that check it. Its readable
 * twin is Counts.answers in ../fusion/pair_bounds.py, on plans of ../columns/plan.py. */
#ifndef COUNTLESS_QUESTION_H
#define COUNTLESS_QUESTION_H

#include "crossed.h"
#include "walk.h"

#define LEAST_HINT 1e-9  /* as in ../columns/plan.py */
#define PAIRS_ASKED 2    /* these are as in ../fusion/pair_bounds.py */
#define NEAR 1.25
#define LEAST_ROWS 0.5

/* A position that is read: by which filter, as which of its digits. */
typedef struct {
    int rank, filter, digit;
} Read;

/* Some filters of a box, or all, as steps. */
typedef struct {
    Node *node;
    double *hints; /* of all steps, or NULL */
    int count, slots;
} Plan;

/* How a question is walked: with `budget` particles and, if the sampling error is above `target`, with up to `most`. */
typedef struct {
    int budget, most;
    double target, power, rare;
    const double *offsets, *again;
} Effort;

/* Some filters of a question: their density in the table, and what the model says. */
typedef struct {
    const int *filter;
    int count, hinted;
    int two[2]; /* the filters of a part of one or two */
    double density;
    Result walked;
} Part;

#define MOST_PARTS (PAIRS_ASKED + 2) /* pairs, the rarest filter and a star */

static void plan_free(Plan *plan) {
    free(plan->node);
    free(plan->hints);
}

/* The reads of some filters, or of all if `some` is NULL, in the model's order. Filters that ask nothing have none. */
static int list_reads(const Model *model, const Crossed *crossed, const int *some, int count, Read *reads) {
    int held = 0;
    for (int k = 0; k < count; k++) {
        int index = some ? some[k] : k;
        const Reading *own = crossed->filter[index];
        for (int d = 0; !own->free && d < own->positions; d++) {
            int rank = model->rank[own->position[d]], at = held++;
            for (; at > 0 && reads[at - 1].rank > rank; at--) reads[at] = reads[at - 1];
            reads[at] = (Read){rank, index, d};
        }
    }
    return held;
}

/* Of the buckets [begin, end) of a filter, the root of the product of the shares that others touch; 0 where it keeps none. */
FAST static void roots_of(const Reading *own, int begin, int end, const int64_t *const *touched, int others, double *roots) {
    for (int b = begin; b < end; b++) roots[b] = own->may[b] ? 1.0 : 0.0;
    for (int o = 0; o < others; o++) {
        for (int b = begin; b < end; b++) {
            double rows = (double)(own->column->rows[b] ? own->column->rows[b] : 1);
            roots[b] *= (double)touched[o][b] / rows;
        }
    }
    for (int b = begin; b < end; b++) roots[b] = sqrt(roots[b]);
}

/* For each symbol at the first position of a filter, MASK last, about how often the filters that are read later hold
 * too: the root of the product of their shares among the rows of a code's bucket, and the most that a code with this
 * symbol has. 0 if nothing is known of any. */
static int hint_of(const Crossed *crossed, const Read *reads, int count, int place, int64_t symbols, double *hint) {
    int index = reads[place].filter, held = 0, others[count];
    for (int later = place + 1; later < count; later++) {
        int other = reads[later].filter, seen = other == index || !are_pair(crossed, index, other);
        for (int o = 0; o < held; o++) seen |= others[o] == other;
        if (!seen) others[held++] = other;
    }
    if (!held) return 0;
    const Reading *own = crossed->filter[index];
    const int64_t *start = own->column->starts.buf, *touched[count];
    int64_t each = (own->column->codes + symbols - 1) / symbols;
    int begin = own->touched[0], end = own->touched[2 * own->touches - 1];
    double roots[own->column->buckets];
    for (int o = 0; o < held; o++) touched[o] = touched_rows(crossed, index, others[o]);
    roots_of(own, begin, end, touched, held, roots);
    for (int64_t v = 0; v < symbols; v++) hint[v] = LEAST_HINT;
    hint[symbols] = 1.0;
    for (int b = begin; b < end; b++) {
        int64_t last = b + 1 < own->column->buckets ? start[b + 1] : own->column->codes;
        for (int64_t code = start[b], symbol = code / each; code < last; symbol++) {
            hint[symbol] = roots[b] > hint[symbol] ? roots[b] : hint[symbol];
            code = (symbol + 1) * each;
        }
    }
    return 1;
}

/* The steps of some filters, or of all if `some` is NULL; with hints if they are `hinted`. */
static int make_plan(const Model *model, const Crossed *crossed, const int *some, int count, int hinted, Plan *plan) {
    Read reads[model->positions];
    int64_t room = 0;
    int slot[crossed->count];
    plan->count = list_reads(model, crossed, some, count, reads);
    for (int n = 0; n < plan->count; n++) room += model->position[model->order[reads[n].rank]].size + 1;
    plan->node = calloc((size_t)plan->count + 1, sizeof(Node));
    plan->hints = hinted ? malloc((size_t)(room + 1) * sizeof(double)) : NULL;
    if (!plan->node || (hinted && !plan->hints)) return 0;
    double *hint = plan->hints;
    for (int n = 0; n < plan->count; n++) {
        const Reading *own = crossed->filter[reads[n].filter];
        const DigitTable *table = &own->table[reads[n].digit];
        int opens = reads[n].digit == 0, several = own->positions > 1;
        int64_t symbols = own->radix[reads[n].digit];
        if (opens) slot[reads[n].filter] = several ? plan->slots++ : -1;
        plan->node[n] = (Node){.position = model->order[reads[n].rank], .depth = n, .ends = n + 1 == plan->count,
                               .slot = slot[reads[n].filter], .opens = opens, .start = 1, .states = table->states,
                               .weights = table->weights, .next = table->next};
        if (hinted && opens && hint_of(crossed, reads, plan->count, n, symbols, hint)) {
            plan->node[n].hint = hint;
            hint += symbols + 1;
        }
    }
    for (int n = 0; n < plan->count; n++) /* what the step below reads */
        plan->node[n].reach = n + 1 < plan->count ? model->position[plan->node[n + 1].position].cut : 0;
    return 1;
}

/* The answer of a plan, by as many particles as it needs. */
static int walk_plan(const Model *model, Workspace *space, const Plan *plan, const Effort *effort, Result *answer) {
    *answer = (Result){.density = 1.0, .exact = 1, .most = 1};
    if (!plan->count) return DONE;
    Result *results = calloc((size_t)plan->count, sizeof(Result)), *last = results + plan->count - 1;
    if (!results) return NO_MEMORY;
    int status = walk(model, space, plan->node, plan->count, plan->slots, effort->budget, effort->power, effort->offsets,
                      results);
    int budget = effort->budget;
    double error = last->exact ? 0.0 : sqrt(last->variance), rows = last->rows;
    while (budget < effort->most && error * sqrt((double)effort->budget / budget) > effort->target) budget *= 2;
    if (status == DONE && budget > effort->budget) {
        status = walk(model, space, plan->node, plan->count, plan->slots, budget, effort->power, effort->again, results);
        last->rows += rows;
    }
    *answer = *last;
    free(results);
    return status;
}

/* The rarest filter, and the pairs of filters that have most to do with each other, where they are known; -1 if memory is
 * short. */
static int list_parts(const Crossed *crossed, Part *parts) {
    int count = crossed->count, held = 0, rarest = 0;
    double rows = (double)crossed->tables->rows, bond[PAIRS_ASKED];
    double *counts = malloc((size_t)count * (size_t)count * sizeof(double));
    if (!counts) return -1;
    for (int p = 0; p < count * count; p++) {
        double least = (double)crossed->least[p], most = (double)crossed->most[p];
        counts[p] = sqrt((least > LEAST_ROWS ? least : LEAST_ROWS) * (most > LEAST_ROWS ? most : LEAST_ROWS));
    }
    for (int i = 1; i < count; i++)
        if (counts[i * count + i] < counts[rarest * count + rarest]) rarest = i;
    int diagonal = rarest * count + rarest;
    if ((double)crossed->most[diagonal] <= NEAR * (double)crossed->least[diagonal])
        parts[held++] = (Part){.count = 1, .two = {rarest}, .density = counts[diagonal] / rows};
    Part *pairs = parts + held;
    int strongest = 0;
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            int p = i * count + j;
            if (!((double)crossed->most[p] <= NEAR * (double)crossed->least[p])) continue;
            double own = fabs(log(counts[p] * rows / (counts[i * count + i] * counts[j * count + j])));
            int at = strongest;
            while (at > 0 && bond[at - 1] < own) at--;
            if (at == PAIRS_ASKED) continue;
            strongest += strongest < PAIRS_ASKED;
            for (int k = strongest - 1; k > at; k--) {
                bond[k] = bond[k - 1];
                pairs[k] = pairs[k - 1];
            }
            bond[at] = own;
            pairs[at] = (Part){.count = 2, .two = {i, j}, .density = counts[p] / rows};
        }
    }
    free(counts);
    held += strongest;
    for (int p = 0; p < held; p++) parts[p].filter = parts[p].two;
    return held;
}

/* The answer of all filters and, if it has few rows, that of its parts; a `star` of filters is one of them. */
static int answer_question(const Model *model, Workspace *space, const Crossed *crossed, const Effort *effort,
                           const Part *star, Plan *plan, Result *answer, Part *parts, int *held) {
    int status = walk_plan(model, space, plan, effort, answer);
    *held = 0;
    if (status != DONE || !(answer->density * (double)crossed->tables->rows < effort->rare)) return status;
    if ((*held = list_parts(crossed, parts)) < 0) return NO_MEMORY;
    if (star->count) parts[(*held)++] = *star;
    for (int p = 0; status == DONE && p < *held; p++) {
        Plan own = {0};
        if (!make_plan(model, crossed, parts[p].filter, parts[p].count, parts[p].hinted, &own)) status = NO_MEMORY;
        else status = walk_plan(model, space, &own, effort, &parts[p].walked);
        plan_free(&own);
    }
    return status;
}

/* The filters and the density of a star, from its tuple or None. `filters` has room for all. */
static int read_star(PyObject *item, const Crossed *crossed, int *filters, Part *star) {
    PyObject *list;
    *star = (Part){.filter = filters};
    if (item == Py_None) return 1;
    if (!PyArg_ParseTuple(item, "O!d", &PyTuple_Type, &list, &star->density)) return 0;
    Py_ssize_t count = PyTuple_Size(list);
    int good = count > 0 && count <= crossed->count;
    for (int f = 0; good && f < count; f++) {
        long filter = PyLong_AsLong(PyTuple_GetItem(list, f));
        good = filter >= 0 && filter < crossed->count && (!f || filter > filters[f - 1]);
        filters[f] = (int)filter;
    }
    star->count = good ? (int)count : 0;
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "a star is not of rising filters of the question");
    return good;
}

/* Whether the filters read positions of the model, each once, as it has them; their tables are made. */
static int check_filters(const Model *model, const Crossed *crossed) {
    char seen[model->positions];
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < crossed->count; i++) {
        Reading *own = crossed->filter[i];
        for (int d = 0; d < own->positions; d++) {
            int position = own->position[d];
            if (position < 0 || position >= model->positions || seen[position]++ ||
                model->position[position].size != own->radix[d]) {
                PyErr_SetString(PyExc_ValueError, "a filter does not fit the positions of the model");
                return 0;
            }
        }
        if (!own->free && !tables_of(own)) {
            PyErr_NoMemory();
            return 0;
        }
    }
    return 1;
}

/* (filters, counted, found, rows): a part's filters, its density by the counts and by the model, and the rows it took. */
static PyObject *part_answer(const Part *part) {
    PyObject *filters = PyTuple_New(part->count);
    for (int f = 0; filters && f < part->count; f++) PyTuple_SetItem(filters, f, PyLong_FromLong(part->filter[f]));
    if (!filters) return NULL;
    return Py_BuildValue("NddL", filters, part->density, part->walked.density, (long long)part->walked.rows);
}

static PyObject *question_answer(const Plan *plan, const Result *answer, const Part *parts, int held) {
    PyObject *checks = PyTuple_New(held), *visited = PyTuple_New(plan->count);
    for (int n = 0; visited && n < plan->count; n++)
        PyTuple_SetItem(visited, n, PyLong_FromLong(plan->node[n].position));
    for (int p = 0; checks && p < held; p++) {
        PyObject *check = part_answer(&parts[p]);
        if (check) PyTuple_SetItem(checks, p, check);
        else Py_CLEAR(checks);
    }
    if (checks && visited)
        return Py_BuildValue("dOiNLdN", answer->density, answer->exact ? Py_True : Py_False, answer->most, visited,
                             (long long)answer->rows, answer->variance, checks);
    Py_XDECREF(checks);
    Py_XDECREF(visited);
    return NULL;
}

#endif
