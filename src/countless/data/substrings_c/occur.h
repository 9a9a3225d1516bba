/* How many rows contain each substring of a trie, in one pass over the rows.

   An automaton reads a row: its state is the longest substring of the trie that ends at the current symbol, and all its
   ends, which the links lead to, occur there too. Rows are sorted, and what a row shares with the one before is not read
   again: a substring is counted when the part of the rows in which it was first seen ends. */
#ifndef COUNTLESS_OCCUR_H
#define COUNTLESS_OCCUR_H

typedef struct {
    int32_t nodes;
    const int32_t *parent;
    const uint16_t *symbol;
    int32_t *link;   /* of each node: without its first symbol */
    int32_t *child;  /* a hash table of nodes by parent and symbol, 0 where there is none */
    uint64_t mask;
} Automaton;

typedef struct {
    int32_t link, since, count; /* since: the row since which it is in all rows, or -1 */
} Mark;

static int32_t child_of(const Automaton *own, int32_t node, uint16_t symbol) {
    uint64_t here = scatter_key((uint64_t)node << 16 | symbol) & own->mask;
    for (int32_t child; (child = own->child[here]); here = (here + 1) & own->mask)
        if (own->parent[child] == node && own->symbol[child] == symbol) return child;
    return 0;
}

/* Nodes come after their parents, and the trie has every part of its substrings. */
static int automaton_make(Automaton *own, int32_t nodes, const int32_t *parent, const uint16_t *symbol) {
    uint64_t slots = 4;
    while (slots < 2 * (uint64_t)nodes) slots *= 2;
    *own = (Automaton){nodes, parent, symbol, calloc(nodes, sizeof(int32_t)), calloc(slots, sizeof(int32_t)), slots - 1};
    if (!own->link || !own->child) return 0;
    for (int32_t node = 1; node < nodes; node++) {
        uint64_t here = scatter_key((uint64_t)parent[node] << 16 | symbol[node]) & own->mask;
        while (own->child[here]) here = (here + 1) & own->mask;
        own->child[here] = node;
    }
    for (int32_t node = 1; node < nodes; node++)
        if (parent[node]) own->link[node] = child_of(own, own->link[parent[node]], symbol[node]);
    return 1;
}

static void automaton_free(Automaton *own) {
    free(own->link);
    free(own->child);
}

static int32_t step(const Automaton *own, int32_t state, uint16_t symbol) {
    for (;;) {
        int32_t child = child_of(own, state, symbol);
        if (child || !state) return child;
        state = own->link[state];
    }
}

typedef struct {
    const uint16_t *text;
    uint32_t length;
} RowText;

static int by_text(const void *one, const void *two) {
    const RowText *a = one, *b = two;
    uint32_t least = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, least * sizeof(uint16_t));
    return order ? order : a->length < b->length ? -1 : a->length > b->length;
}

static void forget(Mark *marks, const int32_t *seen, int64_t from, int64_t to, int32_t row) {
    for (int64_t i = from; i < to; i++) {
        Mark *mark = &marks[seen[i]];
        mark->count += row - mark->since;
        mark->since = -1;
    }
}

/* Adds the rows that contain each node to `counts`. The rows of the text begin at `starts`, which has their end too. */
static int occur(const Automaton *own, const uint16_t *text, const uint32_t *starts, int32_t rows, int64_t *counts) {
    uint32_t longest = 0;
    for (int32_t row = 0; row < rows; row++)
        if (starts[row + 1] - starts[row] > longest) longest = starts[row + 1] - starts[row];
    RowText *order = malloc((rows + 1) * sizeof(RowText));
    Mark *marks = malloc(own->nodes * sizeof(Mark));
    int32_t *states = calloc(longest + 1, sizeof(int32_t));
    int64_t *ends = calloc(longest + 1, sizeof(int64_t)); /* of what was first seen up to each place */
    int64_t room = 1 << 12;
    int32_t *seen = malloc(room * sizeof(int32_t));
    int done = order && marks && states && ends && seen;
    if (done) {
        int is_sorted = 1;
        for (int32_t row = 0; row < rows; row++) {
            order[row] = (RowText){text + starts[row], starts[row + 1] - starts[row]};
            is_sorted = is_sorted && (!row || by_text(&order[row - 1], &order[row]) <= 0);
        }
        if (!is_sorted) qsort(order, rows, sizeof(RowText), by_text);
        for (int32_t node = 0; node < own->nodes; node++) marks[node] = (Mark){own->link[node], -1, 0};
    }
    uint32_t before = 0;
    for (int32_t row = 0; done && row < rows; row++) {
        RowText here = order[row];
        uint32_t same = 0, most = before < here.length ? before : here.length;
        if (row)
            while (same < most && order[row - 1].text[same] == here.text[same]) same++;
        forget(marks, seen, ends[same], ends[before], row);
        int32_t state = states[same];
        int64_t end = ends[same];
        for (uint32_t place = same; place < here.length; place++) {
            uint16_t symbol = here.text[place];
            state = symbol == BREAK ? 0 : step(own, state, symbol);
            for (int32_t node = state; node && marks[node].since < 0; node = marks[node].link) {
                if (end == room) {
                    int32_t *more = realloc(seen, 2 * room * sizeof(int32_t));
                    if (!(done = more != NULL)) break;
                    seen = more;
                    room *= 2;
                }
                marks[node].since = row;
                seen[end++] = node;
            }
            states[place + 1] = state;
            ends[place + 1] = end;
        }
        before = here.length;
    }
    if (done) {
        forget(marks, seen, 0, ends[before], rows);
        for (int32_t node = 0; node < own->nodes; node++) counts[node] += marks[node].count;
    }
    free(order);
    free(marks);
    free(states);
    free(ends);
    free(seen);
    return done;
}

#endif
