/* Counts the rows that contain each substring of a trie, in one pass over the rows (Aho-Corasick).

   An automaton reads a row. Its state is the longest substring of the trie that ends at the current symbol. Its
   suffixes, to which the links lead, end there too. The rows are sorted, and the prefix that a row shares with the one
   before is not read again: a substring in this prefix is in both rows, and is counted once the prefix changes. */
#ifndef COUNTLESS_OCCUR_H
#define COUNTLESS_OCCUR_H

typedef struct {
    int32_t nodes;
    const int32_t *parent;
    const uint16_t *symbol;
    int32_t *link;   /* of each node: the node without its first symbol */
    int32_t *child;  /* a hash table of nodes by parent and symbol; 0 is an empty slot */
    uint64_t mask;
} Automaton;

typedef struct {
    int32_t link, since, count; /* since: the first of the successive rows that contain the node, or -1 */
} Mark;

/* The child of a node by a symbol; 0 if there is none. */
static int32_t child_of(const Automaton *automaton, int32_t node, uint16_t symbol) {
    uint64_t slot = scatter_key((uint64_t)node << 16 | symbol) & automaton->mask;
    for (int32_t child; (child = automaton->child[slot]); slot = (slot + 1) & automaton->mask)
        if (automaton->parent[child] == node && automaton->symbol[child] == symbol) return child;
    return 0;
}

/* Builds the automaton of a trie in which nodes come after their parents, and which has every part of its substrings.
   Returns 0 without memory. */
static int automaton_make(Automaton *automaton, int32_t nodes, const int32_t *parent, const uint16_t *symbol) {
    uint64_t slots = 4;
    while (slots < 2 * (uint64_t)nodes) slots *= 2;
    int32_t *link = calloc(nodes, sizeof(int32_t)), *child = calloc(slots, sizeof(int32_t));
    *automaton = (Automaton){nodes, parent, symbol, link, child, slots - 1};
    if (!automaton->link || !automaton->child) return 0;
    for (int32_t node = 1; node < nodes; node++) {
        uint64_t slot = scatter_key((uint64_t)parent[node] << 16 | symbol[node]) & automaton->mask;
        while (automaton->child[slot]) slot = (slot + 1) & automaton->mask;
        automaton->child[slot] = node;
    }
    for (int32_t node = 1; node < nodes; node++)
        if (parent[node]) automaton->link[node] = child_of(automaton, automaton->link[parent[node]], symbol[node]);
    return 1;
}

static void automaton_free(Automaton *automaton) {
    free(automaton->link);
    free(automaton->child);
}

/* The state after the next symbol. */
static int32_t step(const Automaton *automaton, int32_t state, uint16_t symbol) {
    for (;;) {
        int32_t child = child_of(automaton, state, symbol);
        if (child || !state) return child;
        state = automaton->link[state];
    }
}

typedef struct {
    const uint16_t *text;
    uint32_t length;
} RowText;

/* Compares rows by their bytes. */
static int by_text(const void *first, const void *second) {
    const RowText *a = first, *b = second;
    uint32_t least = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, least * sizeof(uint16_t));
    return order ? order : a->length < b->length ? -1 : a->length > b->length;
}

/* Counts the nodes from `from` up to `to` of the list `found`: they are in all rows before `row`, and not in it. */
static void count_nodes(Mark *marks, const int32_t *found, int64_t from, int64_t to, int32_t row) {
    for (int64_t i = from; i < to; i++) {
        Mark *mark = &marks[found[i]];
        mark->count += row - mark->since;
        mark->since = -1;
    }
}

/* Adds the number of rows that contain each node to `counts`. `starts` has the start of each row, and the end of the
   last. Returns 0 without memory. */
static int occur(const Automaton *automaton, const uint16_t *text, const uint32_t *starts, int32_t rows,
                 int64_t *counts) {
    uint32_t longest = 0;
    for (int32_t row = 0; row < rows; row++)
        if (starts[row + 1] - starts[row] > longest) longest = starts[row + 1] - starts[row];
    RowText *order = malloc((rows + 1) * sizeof(RowText));
    Mark *marks = malloc(automaton->nodes * sizeof(Mark));
    int32_t *states = calloc(longest + 1, sizeof(int32_t));
    int64_t *ends = calloc(longest + 1, sizeof(int64_t)); /* how many nodes were found in each prefix of the row */
    int64_t room = 1 << 12;
    int32_t *found = malloc(room * sizeof(int32_t));
    int done = order && marks && states && ends && found;
    if (done) {
        int is_sorted = 1;
        for (int32_t row = 0; row < rows; row++) {
            order[row] = (RowText){text + starts[row], starts[row + 1] - starts[row]};
            is_sorted = is_sorted && (!row || by_text(&order[row - 1], &order[row]) <= 0);
        }
        if (!is_sorted) qsort(order, rows, sizeof(RowText), by_text);
        for (int32_t node = 0; node < automaton->nodes; node++) marks[node] = (Mark){automaton->link[node], -1, 0};
    }
    uint32_t before = 0; /* the length of the row before */
    for (int32_t row = 0; done && row < rows; row++) {
        RowText text_of_row = order[row];
        uint32_t shared = 0, most = before < text_of_row.length ? before : text_of_row.length;
        if (row)
            while (shared < most && order[row - 1].text[shared] == text_of_row.text[shared]) shared++;
        count_nodes(marks, found, ends[shared], ends[before], row);
        int32_t state = states[shared];
        int64_t end = ends[shared];
        for (uint32_t i = shared; i < text_of_row.length; i++) {
            uint16_t symbol = text_of_row.text[i];
            state = symbol == BREAK ? 0 : step(automaton, state, symbol);
            for (int32_t node = state; node && marks[node].since < 0; node = marks[node].link) {
                if (end == room) {
                    int32_t *more = realloc(found, 2 * room * sizeof(int32_t));
                    if (!(done = more != NULL)) break;
                    found = more;
                    room *= 2;
                }
                marks[node].since = row;
                found[end++] = node;
            }
            states[i + 1] = state;
            ends[i + 1] = end;
        }
        before = text_of_row.length;
    }
    if (done) {
        count_nodes(marks, found, 0, ends[before], rows);
        for (int32_t node = 0; node < automaton->nodes; node++) counts[node] += marks[node].count;
    }
    free(order);
    free(marks);
    free(states);
    free(ends);
    free(found);
    return done;
}

#endif
