/* A trie of all substrings that at least `threshold` rows contain, level by level.

   A substring has no more rows than any part of it. So an occurrence is followed only as long as what was read is
   frequent, and only where the same without its first symbol is frequent too. */
#ifndef COUNTLESS_GROW_H
#define COUNTLESS_GROW_H

#define BREAK 0xffff /* no symbol: substrings do not go over it */

typedef struct {
    uint32_t at;   /* where the occurrence begins in the text */
    int32_t node;  /* what it is so far */
} Occurrence;

typedef struct {
    int32_t *parent, *count;
    uint16_t *symbol;
    int32_t size, room;
} Trie;

/* Children of one level while they are counted. */
typedef struct {
    uint64_t *key;          /* the parent's number and the symbol */
    int32_t *count, *last;  /* rows, and the last one that was counted */
    int32_t *slot;          /* a hash table of places in these lists, or -1 */
    int32_t size, room;
    uint64_t mask;
} Children;

static uint64_t scatter_key(uint64_t key) {
    key *= 0x9e3779b97f4a7c15ull;
    return key ^ (key >> 29);
}

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
    for (int32_t place = 0; place < all->size; place++) {
        uint64_t here = scatter_key(all->key[place]) & all->mask;
        while (all->slot[here] >= 0) here = (here + 1) & all->mask;
        all->slot[here] = place;
    }
    return 1;
}

static void children_free(Children *all) {
    free(all->key);
    free(all->count);
    free(all->last);
    free(all->slot);
}

/* The place of a child, a new one if there is none; -1 without memory. */
static int32_t child_place(Children *all, uint64_t key) {
    uint64_t here = scatter_key(key) & all->mask;
    for (; all->slot[here] >= 0; here = (here + 1) & all->mask)
        if (all->key[all->slot[here]] == key) return all->slot[here];
    if (all->size == all->room) {
        if (!children_resize(all, 2 * all->room)) return -1;
        here = scatter_key(key) & all->mask;
        while (all->slot[here] >= 0) here = (here + 1) & all->mask;
    }
    all->slot[here] = all->size;
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

/* The least threshold, from `least` on, that leaves no more than `most` nodes. Counts above HIGHEST are alike. */
#define HIGHEST (1 << 15)
static int32_t threshold_for(const Trie *trie, int32_t least, int32_t most) {
    int32_t nodes[HIGHEST + 1] = {0}, above = 0, found = HIGHEST;
    if (trie->size - 1 <= most || least > HIGHEST) return least;
    for (int32_t node = 1; node < trie->size; node++)
        nodes[trie->count[node] < HIGHEST ? trie->count[node] : HIGHEST]++;
    while (found >= least && above + nodes[found] <= most) above += nodes[found--];
    return found + 1;
}

/* The occurrences of the next level. The rows of the text begin at `starts`. Returns how many are left, or -1. */
static int64_t next_level(const uint16_t *text, const uint32_t *starts, int32_t rows, int level, Occurrence *active,
                          int64_t count, Trie *trie, int32_t threshold) {
    Children found = {0};
    int32_t row = 0;
    int64_t left = 0, kept = 0;
    if (!children_resize(&found, 1 << 16)) goto failed;
    for (int64_t i = 0; i < count; i++) {
        Occurrence own = active[i];
        uint16_t symbol = text[own.at + level];
        if (symbol == BREAK || trie->count[own.node] < threshold) continue;
        if (level && !(i + 1 < count && active[i + 1].at == own.at + 1)) continue;
        while (row + 1 < rows && starts[row + 1] <= own.at) row++;
        int32_t place = child_place(&found, (uint64_t)own.node << 16 | symbol);
        if (place < 0) goto failed;
        if (found.last[place] != row) {
            found.last[place] = row;
            found.count[place]++;
        }
        active[left++] = (Occurrence){own.at, place};
    }
    if (!trie_reserve(trie, trie->size + found.size)) goto failed;
    for (int32_t place = 0; place < found.size; place++) {
        int32_t node = -1;
        if (found.count[place] >= threshold) {
            node = trie->size++;
            trie->parent[node] = (int32_t)(found.key[place] >> 16);
            trie->symbol[node] = (uint16_t)found.key[place];
            trie->count[node] = found.count[place];
        }
        found.last[place] = node;
    }
    for (int64_t i = 0; i < left; i++) {
        int32_t node = found.last[active[i].node];
        if (node >= 0) active[kept++] = (Occurrence){active[i].at, node};
    }
    children_free(&found);
    return kept;
failed:
    children_free(&found);
    return -1;
}

/* Fills `trie`, whose node 0 is the empty substring, and returns the threshold that was needed; 0 without memory.
   Nodes below it are in the trie too, and are to be dropped. */
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
