/* A trie of all substrings that at least `threshold` rows contain, level by level.

   A substring is in no more rows than any part of it. So an occurrence is extended only as long as it is frequent, and
   only if the same substring without its first symbol is frequent too. */
#ifndef COUNTLESS_GROW_H
#define COUNTLESS_GROW_H

#define BREAK 0xffff /* not a symbol: no substring contains it */

typedef struct {
    uint32_t at;   /* its start in the text */
    int32_t node;  /* the node of its symbols so far */
} Occurrence;

typedef struct {
    int32_t *parent, *count;
    uint16_t *symbol;
    int32_t size, room;
} Trie;

/* The nodes of the next level, while they are counted. */
typedef struct {
    uint64_t *key;          /* the parent and the symbol */
    int32_t *count, *last;  /* the number of rows, and the last row that was counted */
    int32_t *slot;          /* a hash table of indexes in these lists; -1 is an empty slot */
    int32_t size, room;
    uint64_t mask;
} Children;

static uint64_t scatter_key(uint64_t key) {
    key *= 0x9e3779b97f4a7c15ull;
    return key ^ (key >> 29);
}

/* Makes room for this many children; returns 0 without memory. */
static int children_resize(Children *all, int32_t room) {
    uint64_t slots = 2 * (uint64_t)room;
    uint64_t *key = realloc(all->key, room * sizeof(uint64_t));
    if (key) all->key = key;
    int32_t *count = realloc(all->count, room * sizeof(int32_t));
    if (count) all->count = count;
    int32_t *last = realloc(all->last, room * sizeof(int32_t));
    if (last) all->last = last;
    free(all->slot);
    all->slot = malloc(slots * sizeof(int32_t));
    if (!key || !count || !last || !all->slot) return 0;
    memset(all->slot, 0xff, slots * sizeof(int32_t));
    all->room = room;
    all->mask = slots - 1;
    for (int32_t index = 0; index < all->size; index++) {
        uint64_t slot = scatter_key(all->key[index]) & all->mask;
        while (all->slot[slot] >= 0) slot = (slot + 1) & all->mask;
        all->slot[slot] = index;
    }
    return 1;
}

static void children_free(Children *all) {
    free(all->key);
    free(all->count);
    free(all->last);
    free(all->slot);
}

/* The index of a child, which is added if it is new; -1 without memory. */
static int32_t child_index(Children *all, uint64_t key) {
    uint64_t slot = scatter_key(key) & all->mask;
    for (; all->slot[slot] >= 0; slot = (slot + 1) & all->mask)
        if (all->key[all->slot[slot]] == key) return all->slot[slot];
    if (all->size == all->room) {
        if (!children_resize(all, 2 * all->room)) return -1;
        slot = scatter_key(key) & all->mask;
        while (all->slot[slot] >= 0) slot = (slot + 1) & all->mask;
    }
    all->slot[slot] = all->size;
    all->key[all->size] = key;
    all->count[all->size] = 0;
    all->last[all->size] = -1;
    return all->size++;
}

static int trie_reserve(Trie *trie, int32_t room) {
    if (room <= trie->room) return 1;
    room = room > 2 * trie->room ? room : 2 * trie->room;
    int32_t *parent = realloc(trie->parent, room * sizeof(int32_t));
    if (parent) trie->parent = parent;
    int32_t *count = realloc(trie->count, room * sizeof(int32_t));
    if (count) trie->count = count;
    uint16_t *symbol = realloc(trie->symbol, room * sizeof(uint16_t));
    if (symbol) trie->symbol = symbol;
    if (!parent || !count || !symbol) return 0;
    trie->room = room;
    return 1;
}

static void trie_free(Trie *trie) {
    free(trie->parent);
    free(trie->count);
    free(trie->symbol);
}

/* The lowest threshold of at least `least` that leaves no more than `most` nodes. Counts above HIGHEST are not
   distinguished. */
#define HIGHEST (1 << 15)
static int32_t threshold_for(const Trie *trie, int32_t least, int32_t most) {
    int32_t nodes[HIGHEST + 1] = {0}, above = 0, count = HIGHEST;
    if (trie->size - 1 <= most || least > HIGHEST) return least;
    for (int32_t node = 1; node < trie->size; node++)
        nodes[trie->count[node] < HIGHEST ? trie->count[node] : HIGHEST]++;
    while (count >= least && above + nodes[count] <= most) above += nodes[count--];
    return count + 1;
}

/* Extends the `active` occurrences by a symbol and adds the frequent nodes to the trie. `starts` has the start of each
   row. Returns the number of occurrences that are left, or -1 without memory. */
static int64_t next_level(const uint16_t *text, const uint32_t *starts, int32_t rows, int level, Occurrence *active,
                          int64_t count, Trie *trie, int32_t threshold) {
    Children children = {0};
    int32_t row = 0;
    int64_t extended = 0, kept = 0;
    if (!children_resize(&children, 1 << 16)) goto failed;
    for (int64_t i = 0; i < count; i++) {
        Occurrence occurrence = active[i];
        uint16_t symbol = text[occurrence.at + level];
        if (symbol == BREAK || trie->count[occurrence.node] < threshold) continue;
        if (level && !(i + 1 < count && active[i + 1].at == occurrence.at + 1)) continue;
        while (row + 1 < rows && starts[row + 1] <= occurrence.at) row++;
        int32_t child = child_index(&children, (uint64_t)occurrence.node << 16 | symbol);
        if (child < 0) goto failed;
        if (children.last[child] != row) {
            children.last[child] = row;
            children.count[child]++;
        }
        active[extended++] = (Occurrence){occurrence.at, child};
    }
    if (!trie_reserve(trie, trie->size + children.size)) goto failed;
    int32_t *node_of = children.last; /* of each child: its node in the trie, -1 if it is not frequent */
    for (int32_t child = 0; child < children.size; child++) {
        int32_t node = -1;
        if (children.count[child] >= threshold) {
            node = trie->size++;
            trie->parent[node] = (int32_t)(children.key[child] >> 16);
            trie->symbol[node] = (uint16_t)children.key[child];
            trie->count[node] = children.count[child];
        }
        node_of[child] = node;
    }
    for (int64_t i = 0; i < extended; i++) {
        int32_t node = node_of[active[i].node];
        if (node >= 0) active[kept++] = (Occurrence){active[i].at, node};
    }
    children_free(&children);
    return kept;
failed:
    children_free(&children);
    return -1;
}

/* Fills `trie`, whose node 0 is the empty substring. Returns the threshold, raised until at most `most` nodes reach it;
   0 without memory. The caller drops nodes below the threshold, which may be in the trie. */
static int32_t grow(const uint16_t *text, int64_t length, const uint32_t *starts, int32_t rows, int32_t threshold,
                    int deepest, int32_t most, Trie *trie) {
    Occurrence *active = malloc((length + 1) * sizeof(Occurrence));
    int64_t count = 0;
    if (!active || !trie_reserve(trie, 1 << 16)) threshold = 0;
    if (threshold) {
        trie->size = 1;
        trie->parent[0] = 0;
        trie->symbol[0] = BREAK;
        trie->count[0] = INT32_MAX;
        for (int64_t at = 0; at < length; at++)
            if (text[at] != BREAK) active[count++] = (Occurrence){(uint32_t)at, 0};
    }
    for (int level = 0; threshold && level < deepest && count > 0; level++) {
        count = next_level(text, starts, rows, level, active, count, trie, threshold);
        threshold = count < 0 ? 0 : threshold_for(trie, threshold, most);
    }
    free(active);
    return threshold;
}

#endif
