/* Strings that begin alike are mostly neighbours. What a string has in common with the one before it was read there. */
#ifndef COUNTLESS_FRONT_CODED_H
#define COUNTLESS_FRONT_CODED_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define OVERLAP 7           /* bytes of what is shared that the rests repeat */
#define PIECE (OVERLAP + 1) /* bytes of a needle's end that are looked for: where they end in a rest, they are whole */
#define STEP 64             /* bytes of the rests: of every so manieth it is known to which string it belongs */
#define LANES 4             /* strings that an automaton reads at the same time: each waits for its own table look-up */
#define STRIDE 16           /* characters between two looks whether a string is decided */
#define ACCEPTED 1
#define DECIDED 2
#define MOST_SHARED 255
#define POINTS 0x110000 /* of Unicode */

typedef struct {
    const uint8_t *data;
    const int64_t *start; /* of each string, and the end of the last one */
    Py_ssize_t count;
} Strings;

/* What is left of the strings if each begins OVERLAP bytes before it differs from the one before it; after the last one
   there is room for PIECE bytes more. */
typedef struct {
    const uint8_t *rests, *shared; /* of each string: how many bytes it has in common with the one before */
    const int64_t *rest;           /* where that of each string begins, and the end of the last one */
    const int32_t *owner;          /* the string of every STEP-th byte of the rests */
} Fronts;

/* The first place from `at` on, before `end`, where two bytes of the needle are as wanted; `end` if there is none. */
static const uint8_t *candidate(const uint8_t *at, const uint8_t *end, Py_ssize_t one, Py_ssize_t two, uint8_t first,
                                uint8_t second) {
#ifdef __SSE2__
    const __m128i wanted_first = _mm_set1_epi8((char)first), wanted_second = _mm_set1_epi8((char)second);
    for (; end - at >= 16; at += 16) {
        __m128i a = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + one)), wanted_first);
        __m128i b = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + two)), wanted_second);
        int both = _mm_movemask_epi8(_mm_and_si128(a, b));
        if (both) return at + __builtin_ctz((unsigned)both);
    }
#endif
    while (at < end && !(at[one] == first && at[two] == second)) at++;
    return at;
}

static int continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The end of the needle where it first ends in a string, from the begin of the string on; 0 if it does not. */
static int64_t first_end(const uint8_t *begin, const uint8_t *end, const uint8_t *needle, Py_ssize_t size) {
    for (const uint8_t *at = begin; end - at >= size; at++) {
        if (!(at = memchr(at, needle[0], end - at - size + 1))) return 0;
        if (!memcmp(at, needle, size)) return at - begin + size;
    }
    return 0;
}

/* Marks a string in which the needle ends so early, and those after it that share it; the first that does not. */
static Py_ssize_t mark_alike(const Fronts *fronts, Py_ssize_t string, Py_ssize_t last, int64_t end, uint8_t *marks) {
    do marks[string++] = 1;
    while (string < last && fronts->shared[string] >= end);
    return string;
}

/* Marks the strings from `first` to `last` that have the needle; `one` and `two` are places in its last PIECE bytes. */
static void find(const Strings *strings, const Fronts *fronts, const uint8_t *needle, Py_ssize_t size, Py_ssize_t one,
                 Py_ssize_t two, Py_ssize_t first, Py_ssize_t last, uint8_t *marks) {
    if (first == last) return;
    const uint8_t *whole = strings->data + strings->start[first];
    int64_t early = first_end(whole, strings->data + strings->start[first + 1], needle, size);
    Py_ssize_t string = early ? mark_alike(fronts, first, last, early, marks) : first + 1;
    Py_ssize_t before = size > PIECE ? size - PIECE : 0, length = size - before;
    const uint8_t *piece = needle + before;
    uint64_t wanted = 0, here, mask = 0;
    memcpy(&wanted, piece, length);
    memset(&mask, 0xFF, length);
    const uint8_t *at = fronts->rests + fronts->rest[string], *end = fronts->rests + fronts->rest[last] - length + 1;
    while (at < end && (at = candidate(at, end, one, two, piece[one], piece[two])) < end) {
        int64_t place = at++ - fronts->rests;
        memcpy(&here, at - 1, PIECE);
        if ((here ^ wanted) & mask) continue;
        if (fronts->owner[place / STEP] > string) string = fronts->owner[place / STEP];
        while (fronts->rest[string + 1] <= place) string++;
        int64_t left = fronts->rest[string + 1] - place - length; /* bytes of the string after the needle */
        if (left < 0) continue;                                   /* it goes on into the next string */
        int64_t found = strings->start[string + 1] - strings->start[string] - left;
        if (found < size) continue;
        if (before && memcmp(strings->data + strings->start[string + 1] - left - size, needle, before)) continue;
        string = mark_alike(fronts, string, last, found, marks);
        if (at < fronts->rests + fronts->rest[string]) at = fronts->rests + fronts->rest[string];
    }
}

/* One of several strings that an automaton reads at the same time. */
typedef struct {
    Py_ssize_t string, last; /* the one that is read, and where the lane's strings end */
    const uint8_t *at;
    int64_t left, depth;      /* bytes that are not read yet, and those that are */
    int32_t *states;          /* after the first bytes: the next string may share them */
} Lane;

/* Goes on to the lane's next string that an automaton must read; 0 if there is none. Those that the bytes which they
   share decide are marked. */
static int advance(Lane *lane, const Strings *strings, const uint8_t *shared, const int32_t *table, Py_ssize_t kinds,
                   const uint8_t *among, uint8_t *marks) {
    int64_t same = lane->depth;
    for (Py_ssize_t s = ++lane->string; s < lane->last; s = ++lane->string) {
        if (shared[s] < same) same = shared[s];
        if (among && !among[s]) continue;
        int64_t size = strings->start[s + 1] - strings->start[s];
        int32_t flags = table[lane->states[same] + kinds];
        lane->depth = same;
        if (size > same && !(flags & DECIDED)) {
            lane->at = strings->data + strings->start[s] + same;
            lane->left = size - same;
            return 1;
        }
        marks[s] = flags & ACCEPTED;
    }
    return 0;
}

/* Marks the strings that an automaton accepts. `states` has room for LANES times one more than the longest string. */
static void run(const Strings *strings, const uint8_t *shared, const uint16_t *kind, const int32_t *table,
                Py_ssize_t kinds, const uint8_t *among, int32_t *states, int64_t room, uint8_t *marks) {
    Lane lanes[LANES];
    int active = 0;
    for (int lane = 0; lane < LANES; lane++) {
        Lane own = {strings->count * lane / LANES - 1, strings->count * (lane + 1) / LANES, NULL, 0, 0, states + lane * room};
        own.states[0] = 0;
        if (advance(&own, strings, shared, table, kinds, among, marks)) lanes[active++] = own;
    }
    while (active) {
        int64_t steps = STRIDE;
        for (int lane = 0; lane < active; lane++)
            if (lanes[lane].left < steps) steps = lanes[lane].left;
        if (active == LANES) {
            const uint8_t *at[LANES];
            int32_t *after[LANES], state[LANES];
            for (int lane = 0; lane < LANES; lane++) {
                at[lane] = lanes[lane].at;
                after[lane] = lanes[lane].states + lanes[lane].depth;
                state[lane] = *after[lane];
            }
            for (int64_t step = 0; step < steps; step++)
                for (int lane = 0; lane < LANES; lane++)
                    after[lane][step + 1] = state[lane] = table[state[lane] + kind[at[lane][step]]];
        } else
            for (int lane = 0; lane < active; lane++) {
                int32_t *after = lanes[lane].states + lanes[lane].depth;
                for (int64_t step = 0; step < steps; step++) after[step + 1] = table[after[step] + kind[lanes[lane].at[step]]];
            }
        for (int lane = active - 1; lane >= 0; lane--) {
            Lane *own = &lanes[lane];
            own->at += steps;
            own->depth += steps;
            own->left -= steps;
            int32_t flags = table[own->states[own->depth] + kinds];
            if (own->left && !(flags & DECIDED)) continue;
            marks[own->string] = flags & ACCEPTED;
            if (!advance(own, strings, shared, table, kinds, among, marks)) *own = lanes[--active];
        }
    }
}

/* Eight bytes from either end of a string, padded with bytes that no string has: the first one, or the last, is the
   highest of the number. */
static uint64_t head_of(const uint8_t *at, int64_t size) {
    uint64_t found = 0;
    for (int byte = 0; byte < 8; byte++) found = found << 8 | (byte < size ? at[byte] : 0xFF);
    return found;
}

static uint64_t tail_of(const uint8_t *end, int64_t size) {
    uint64_t found = 0;
    for (int byte = 0; byte < 8; byte++) found = found << 8 | (byte < size ? end[-1 - byte] : 0xFF);
    return found;
}

/* Notes the characters from `at` to `end` that are not ASCII, the first of which may have begun before `at`. */
static void note_points(const uint8_t *begin, const uint8_t *at, const uint8_t *end, uint8_t *points) {
    uint64_t word;
    while (at < end) {
        if (end - at >= 8 && (memcpy(&word, at, 8), !(word & 0x8080808080808080u))) {
            at += 8;
            continue;
        }
        if (*at < 0x80) {
            at++;
            continue;
        }
        while (at > begin && continues(*at)) at--;
        uint32_t point = *at < 0xE0 ? *at & 0x1F : *at < 0xF0 ? *at & 0x0F : *at & 0x07;
        for (at++; at < end && continues(*at); at++) point = point << 6 | (*at & 0x3F);
        if (point < POINTS) points[point] = 1;
    }
}

/* What searches need of each string, and whether the strings are sorted. */
static int survey(const Strings *strings, uint64_t *heads, uint64_t *tails, uint8_t *shared, uint8_t *points) {
    const uint8_t *before = strings->data;
    int64_t size_before = 0;
    int sorted = 1;
    for (Py_ssize_t s = 0; s < strings->count; s++) {
        const uint8_t *own = strings->data + strings->start[s];
        int64_t size = strings->start[s + 1] - strings->start[s], least = size < size_before ? size : size_before, same = 0;
        while (same < least && own[same] == before[same]) same++;
        sorted &= same < least ? before[same] < own[same] : size_before <= size;
        shared[s] = (uint8_t)(same < MOST_SHARED ? same : MOST_SHARED);
        heads[s] = head_of(own, size);
        tails[s] = tail_of(own + size, size);
        note_points(own, own + same, own + size, points);
        before = own;
        size_before = size;
    }
    return sorted;
}

#endif
