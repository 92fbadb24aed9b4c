/* How to write what other cores will read: in the way that is the faster one now.

   What plain stores leave in a cache, a core that shares this cache reads at twice the speed of
   memory. But where the readers have no cache in common with the writer, each line that is written
   again must first be taken back from theirs: measured, that costs up to fifteen times the copy, and
   stores that go past the cache, to memory, cost no more than before. Which of the two holds depends
   on where the system runs the processes, and changes while they run. So all writing is timed, and
   the other way is tried for a hundredth of the time. */

#ifndef DECTOOL_WRITER_H
#define DECTOOL_WRITER_H

#include "_shared.h"

#define SMALL 4096     /* bytes below which a plain copy is faster than one past the cache */
#define PREFERENCE 1.5 /* plain stores may take so much longer: what they write is read faster */
#define TRIALS 0.01    /* share of the time of writing that trials of the other way may take */
#define SELDOM 1e8     /* nanoseconds of writing from one trial to the next, at most */
#define PIECES 8       /* in a round, at least; the slowest does not count, as the process may have
                          been interrupted */

enum { PAST_CACHE, PLAIN };

typedef struct {
    int way, trying;
    double pace[2]; /* nanoseconds per byte in either way, 0 where it is not known */
    double rest;    /* nanoseconds of writing until the other way is tried */
    double cost;    /* nanoseconds that the trial has taken */
    int rounds;     /* how often all the memory was written over in this way, in a row */
    /* of the present round: */
    int pieces;
    double bytes, taken;         /* in nanoseconds */
    double worst_bytes, longest; /* of the piece that took the longest for its size */
} Writer;

static inline void write_in_way(int way, char *restrict to, const char *restrict from, size_t size)
{
#if defined(__x86_64__)
    size_t whole = size / 16 * 16;
    if (way == PAST_CACHE) {
        for (size_t at = 0; at < whole; at += 16)
            _mm_stream_si128((__m128i *)(to + at), _mm_loadu_si128((const __m128i *)(from + at)));
        memcpy(to + whole, from + whole, size - whole);
        _mm_sfence();
        return;
    }
    memcpy(to, from, size);
#else
    (void)way;
    memcpy(to, from, size);
#endif
}

/* All the memory was written over once more: judge the way in which it was. */
static inline void judge(Writer *writer)
{
    double *pace = writer->pace, rest = writer->cost / TRIALS;
    double mean = (writer->taken - writer->longest) / (writer->bytes - writer->worst_bytes);
    writer->pieces = 0;
    writer->bytes = writer->taken = writer->worst_bytes = writer->longest = 0;
    if (writer->rounds++ == 0)
        return; /* pages may have been new, and lines were where the other way had left them */
    pace[writer->way ^ writer->trying] = mean;
    int known = pace[PLAIN] > 0 && pace[PAST_CACHE] > 0, way = writer->way;
    if (known)
        writer->way = pace[PLAIN] <= PREFERENCE * pace[PAST_CACHE];
    if (writer->trying) {
        writer->trying = writer->rounds = 0;
        writer->rest = rest < SELDOM ? rest : SELDOM;
    } else if (writer->way != way) {
        writer->rounds = 0;
    } else if (writer->rest <= 0) {
        writer->trying = 1;
        writer->cost = writer->rounds = 0;
    }
}

/* Copy `size` bytes to shared memory, of which `extent` bytes are written over and over; 0 if these
   are not, so that their pages may be new and their time tells nothing. */
static inline void write_shared(Writer *writer, char *restrict to, const char *restrict from,
                                size_t size, size_t extent)
{
    if (size < SMALL || (uintptr_t)to % 16) {
        memcpy(to, from, size);
        return;
    }
    if (extent == 0) {
        write_in_way(writer->way, to, from, size);
        return;
    }
    int64_t start = nanoseconds();
    write_in_way(writer->way ^ writer->trying, to, from, size);
    double bytes = (double)size, taken = (double)(nanoseconds() - start);
    if (writer->trying)
        writer->cost += taken;
    else
        writer->rest -= taken;
    if (taken * writer->worst_bytes >= writer->longest * bytes) {
        writer->longest = taken;
        writer->worst_bytes = bytes;
    }
    writer->bytes += bytes;
    writer->taken += taken;
    if (++writer->pieces >= PIECES && writer->bytes >= (double)extent)
        judge(writer);
}

#endif
