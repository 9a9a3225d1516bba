/* Searches in front-coded strings: the prefix that a string shares with the previous one is read only once. */
#ifndef COUNTLESS_FRONT_CODED_H
#define COUNTLESS_FRONT_CODED_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define OVERLAP 7           /* bytes of the shared prefix that a front-coded string repeats */
#define PIECE (OVERLAP + 1) /* last bytes of a needle that are searched: a front-coded string has all of them or none */
#define STEP 64             /* for every STEP-th byte of the front-coded strings, its string is recorded */
#define LANES 4             /* strings that an automaton reads in parallel, so that their table look-ups overlap */
#define STRIDE 16           /* bytes between two checks whether a string is decided */
#define ACCEPTED 1
#define DECIDED 2
#define MOST_SHARED 255
#define POINTS 0x110000 /* code points of Unicode */

typedef struct {
    const uint8_t *data;
    const int64_t *start; /* offset of each string, and the end of the last one */
    Py_ssize_t count;
} Strings;

/* The front-coded strings: each begins OVERLAP bytes before it differs from the previous one. After the last one there
   are PIECE bytes of padding. */
typedef struct {
    const uint8_t *rests, *shared; /* shared: how many bytes each string shares with the previous one */
    const int64_t *rest;           /* offset of each front-coded string, and the end of the last one */
    const int32_t *owner;          /* the string of every STEP-th byte of `rests` */
} Fronts;

/* The first position between `at` and `end` at which two bytes of the needle match; `end` if there is none. */
static const uint8_t *candidate(const uint8_t *at, const uint8_t *end, Py_ssize_t first_offset,
                                Py_ssize_t second_offset, uint8_t first_byte, uint8_t second_byte) {
#ifdef __SSE2__
    const __m128i first_bytes = _mm_set1_epi8((char)first_byte), second_bytes = _mm_set1_epi8((char)second_byte);
    for (; end - at >= 16; at += 16) {
        __m128i first_matches = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + first_offset)), first_bytes);
        __m128i second_matches = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(at + second_offset)), second_bytes);
        int matches = _mm_movemask_epi8(_mm_and_si128(first_matches, second_matches));
        if (matches) return at + __builtin_ctz((unsigned)matches);
    }
#endif
    while (at < end && !(at[first_offset] == first_byte && at[second_offset] == second_byte)) at++;
    return at;
}

static int continues(uint8_t byte) { return (byte & 0xC0) == 0x80; }

/* The end of the needle's first occurrence in a string, as an offset in the string; 0 if there is none. */
static int64_t first_end(const uint8_t *begin, const uint8_t *end, const uint8_t *needle, Py_ssize_t size) {
    for (const uint8_t *at = begin; end - at >= size; at++) {
        if (!(at = memchr(at, needle[0], end - at - size + 1))) return 0;
        if (!memcmp(at, needle, size)) return at - begin + size;
    }
    return 0;
}

/* Marks a string in which the needle ends at `end`, and the next ones that share this prefix; returns the first that
   does not. */
static Py_ssize_t mark_sharing(const Fronts *fronts, Py_ssize_t string, Py_ssize_t last, int64_t end, uint8_t *matches) {
    do matches[string++] = 1;
    while (string < last && fronts->shared[string] >= end);
    return string;
}

/* Marks the strings from `first` to `last` that have the needle. The offsets are of rare bytes among its last PIECE
   bytes. */
static void find(const Strings *strings, const Fronts *fronts, const uint8_t *needle, Py_ssize_t size, Py_ssize_t first_offset,
                 Py_ssize_t second_offset, Py_ssize_t first, Py_ssize_t last, uint8_t *matches) {
    if (first == last) return;
    const uint8_t *first_string = strings->data + strings->start[first];
    int64_t first_match = first_end(first_string, strings->data + strings->start[first + 1], needle, size);
    Py_ssize_t string = first_match ? mark_sharing(fronts, first, last, first_match, matches) : first + 1;
    Py_ssize_t skipped = size > PIECE ? size - PIECE : 0, length = size - skipped;
    const uint8_t *tail = needle + skipped;
    uint64_t tail_word = 0, word, mask = 0;
    memcpy(&tail_word, tail, length);
    memset(&mask, 0xFF, length);
    const uint8_t *at = fronts->rests + fronts->rest[string], *end = fronts->rests + fronts->rest[last] - length + 1;
    uint8_t first_byte = tail[first_offset], second_byte = tail[second_offset];
    while (at < end && (at = candidate(at, end, first_offset, second_offset, first_byte, second_byte)) < end) {
        int64_t offset = at++ - fronts->rests;
        memcpy(&word, at - 1, PIECE);
        if ((word ^ tail_word) & mask) continue;
        if (fronts->owner[offset / STEP] > string) string = fronts->owner[offset / STEP];
        while (fronts->rest[string + 1] <= offset) string++;
        int64_t rest_size = fronts->rest[string + 1] - offset - length; /* bytes of the string after the needle */
        if (rest_size < 0) continue;                                    /* the match crosses into the next string */
        int64_t match_end = strings->start[string + 1] - strings->start[string] - rest_size;
        if (match_end < size) continue;
        if (skipped && memcmp(strings->data + strings->start[string + 1] - rest_size - size, needle, skipped)) continue;
        string = mark_sharing(fronts, string, last, match_end, matches);
        if (at < fronts->rests + fronts->rest[string]) at = fronts->rests + fronts->rest[string];
    }
}

/* One of the strings that an automaton reads in parallel. */
typedef struct {
    Py_ssize_t string, last; /* the current string, and the end of the lane's strings */
    const uint8_t *at;
    int64_t remaining, depth; /* bytes that are still to be read, and bytes that were read */
    int32_t *states;          /* after each byte: the next string may share the first ones */
} Lane;

/* Advances to the lane's next string that the automaton must read; returns 0 if there is none. Strings that their shared
   prefix decides are marked on the way. */
static int advance(Lane *lane, const Strings *strings, const uint8_t *shared, const int32_t *table, Py_ssize_t kinds,
                   const uint8_t *candidates, uint8_t *matches) {
    int64_t common = lane->depth;
    for (Py_ssize_t s = ++lane->string; s < lane->last; s = ++lane->string) {
        if (shared[s] < common) common = shared[s];
        if (candidates && !candidates[s]) continue;
        int64_t size = strings->start[s + 1] - strings->start[s];
        int32_t flags = table[lane->states[common] + kinds];
        lane->depth = common;
        if (size > common && !(flags & DECIDED)) {
            lane->at = strings->data + strings->start[s] + common;
            lane->remaining = size - common;
            return 1;
        }
        matches[s] = flags & ACCEPTED;
    }
    return 0;
}

/* Marks the strings that an automaton accepts. `states` has LANES times `room` items, one more than the longest string. */
static void run(const Strings *strings, const uint8_t *shared, const uint16_t *kind, const int32_t *table,
                Py_ssize_t kinds, const uint8_t *candidates, int32_t *states, int64_t room, uint8_t *matches) {
    Lane lanes[LANES];
    int active = 0;
    for (int lane = 0; lane < LANES; lane++) {
        Lane current = {strings->count * lane / LANES - 1, strings->count * (lane + 1) / LANES, NULL, 0, 0,
                        states + lane * room};
        current.states[0] = 0;
        if (advance(&current, strings, shared, table, kinds, candidates, matches)) lanes[active++] = current;
    }
    while (active) {
        int64_t steps = STRIDE;
        for (int lane = 0; lane < active; lane++)
            if (lanes[lane].remaining < steps) steps = lanes[lane].remaining;
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
            Lane *current = &lanes[lane];
            current->at += steps;
            current->depth += steps;
            current->remaining -= steps;
            int32_t flags = table[current->states[current->depth] + kinds];
            if (current->remaining && !(flags & DECIDED)) continue;
            matches[current->string] = flags & ACCEPTED;
            if (!advance(current, strings, shared, table, kinds, candidates, matches)) *current = lanes[--active];
        }
    }
}

/* The first or the last eight bytes of a string as a number, padded with bytes that no string has. The first byte of the
   head, and the last of the tail, is the highest. */
static uint64_t head_of(const uint8_t *at, int64_t size) {
    uint64_t word = 0;
    for (int byte = 0; byte < 8; byte++) word = word << 8 | (byte < size ? at[byte] : 0xFF);
    return word;
}

static uint64_t tail_of(const uint8_t *end, int64_t size) {
    uint64_t word = 0;
    for (int byte = 0; byte < 8; byte++) word = word << 8 | (byte < size ? end[-1 - byte] : 0xFF);
    return word;
}

/* Marks the characters from `at` to `end` that are not ASCII. The first one may begin before `at`. */
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

/* Computes the ends and the shared prefix of each string; returns whether the strings are sorted. */
static int survey(const Strings *strings, uint64_t *heads, uint64_t *tails, uint8_t *shared, uint8_t *points) {
    const uint8_t *previous = strings->data;
    int64_t previous_size = 0;
    int sorted = 1;
    for (Py_ssize_t s = 0; s < strings->count; s++) {
        const uint8_t *string = strings->data + strings->start[s];
        int64_t size = strings->start[s + 1] - strings->start[s], common = 0;
        int64_t shorter = size < previous_size ? size : previous_size;
        while (common < shorter && string[common] == previous[common]) common++;
        sorted &= common < shorter ? previous[common] < string[common] : previous_size <= size;
        shared[s] = (uint8_t)(common < MOST_SHARED ? common : MOST_SHARED);
        heads[s] = head_of(string, size);
        tails[s] = tail_of(string + size, size);
        note_points(string, string + common, string + size, points);
        previous = string;
        previous_size = size;
    }
    return sorted;
}

#endif
