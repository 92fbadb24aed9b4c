/* The places of the k largest magnitudes, for one type.

   Magnitudes are the bits of the absolute values, which order as the numbers do, infinity above
   all and NaN above that; of equal ones the first come first. The k-th is found digit by digit from
   histograms; what lies outside the range in question is passed over many numbers at a time, and a
   sample tells at first what is hardly among the largest. */

#ifndef DECTOOL_SELECT_H
#define DECTOOL_SELECT_H

#define DECTOOL_BUCKETS 2048
#define DECTOOL_WORKERS 64

/* Numbers that are passed over together. */
#define DECTOOL_STRIP 32

/* A sample is many short runs. */
#define DECTOOL_RUNS 1024
#define DECTOOL_RUN 16

#endif

static inline BITS NAME(dectool_magnitude)(REAL x)
{
    BITS bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & (BITS)MAGNITUDE;
}

/* Whether any of a strip has a magnitude in [low, low + span]. */
static inline int NAME(dectool_any)(const REAL *restrict x, BITS low, BITS span)
{
    BITS found = 0;
    for (size_t i = 0; i < DECTOOL_STRIP; i++)
        found |= (BITS)(NAME(dectool_magnitude)(x[i]) - low <= span);
    return found != 0;
}

/* Count the digits (magnitude >> shift) - base of the magnitudes in [low, low + span]. */
static DECTOOL_WIDE void NAME(dectool_histogram)(const REAL *restrict x, size_t size, BITS low,
                                                 BITS span, int shift, BITS base,
                                                 size_t *restrict counts)
{
    for (size_t at = 0; at < size; at += DECTOOL_STRIP) {
        size_t end = at + DECTOOL_STRIP;
        if (end <= size && !NAME(dectool_any)(x + at, low, span))
            continue;
        for (size_t i = at; i < end && i < size; i++) {
            BITS magnitude = NAME(dectool_magnitude)(x[i]);
            if ((BITS)(magnitude - low) <= span)
                counts[(magnitude >> shift) - base]++;
        }
    }
}

static DECTOOL_WIDE void NAME(dectool_count)(const REAL *restrict x, size_t size, BITS least,
                                             size_t *above, size_t *equal)
{
    size_t more = 0, same = 0;
    for (size_t i = 0; i < size; i++) {
        BITS magnitude = NAME(dectool_magnitude)(x[i]);
        more += magnitude > least;
        same += magnitude == least;
    }
    *above = more;
    *equal = same;
}

/* Write the places of what is above `least`, and of the first `equal` that are equal to it. */
static DECTOOL_WIDE void NAME(dectool_places)(const REAL *restrict x, size_t size, size_t first,
                                              BITS least, size_t equal, int64_t *restrict out)
{
    for (size_t at = 0; at < size; at += DECTOOL_STRIP) {
        size_t end = at + DECTOOL_STRIP;
        if (end <= size && !NAME(dectool_any)(x + at, least, (BITS)~least))
            continue;
        for (size_t i = at; i < end && i < size; i++) {
            BITS magnitude = NAME(dectool_magnitude)(x[i]);
            if (magnitude > least)
                *out++ = (int64_t)(first + i);
            else if (magnitude == least && equal) {
                *out++ = (int64_t)(first + i);
                equal--;
            }
        }
    }
}

/* A magnitude that most likely less than twice k or so reach, and at least k. */
static BITS NAME(dectool_sampled)(const REAL *x, size_t count, size_t k, int shift)
{
    size_t counts[DECTOOL_BUCKETS] = {0}, runs = count / DECTOOL_RUN;
    if (runs < 4 * DECTOOL_RUNS)
        return 0;
    for (size_t run = 0; run < DECTOOL_RUNS; run++) {
        const REAL *part = x + runs * run / DECTOOL_RUNS * DECTOOL_RUN;
        for (size_t i = 0; i < DECTOOL_RUN; i++)
            counts[NAME(dectool_magnitude)(part[i]) >> shift]++;
    }
    double expected = (double)k / (double)count * (DECTOOL_RUNS * DECTOOL_RUN);
    double wanted = expected + 4.0 * sqrt(expected) + 4.0, seen = 0.0;
    for (size_t bucket = DECTOOL_BUCKETS; bucket--;) {
        seen += (double)counts[bucket];
        if (seen >= wanted)
            return (BITS)bucket << shift;
    }
    return 0;
}

/* The k-th largest magnitude, and how many are above it. */
static BITS NAME(dectool_kth)(const REAL *x, size_t count, size_t k, size_t *counts, size_t *above)
{
    static const int shifts[] = DIGITS;
    BITS floor = NAME(dectool_sampled)(x, count, k, shifts[0]), low = floor;
    BITS span = (BITS)MAGNITUDE - low, base = 0;
    size_t workers = (size_t)dectool_threads(count), skipped = 0;
    workers = workers < DECTOOL_WORKERS ? workers : DECTOOL_WORKERS;
    size_t tiles = (count + DECTOOL_TILE - 1) / DECTOOL_TILE;
    for (size_t digit = 0; digit < sizeof shifts / sizeof *shifts;) {
        int shift = shifts[digit];
        memset(counts, 0, workers * DECTOOL_BUCKETS * sizeof *counts);
        DECTOOL_WORKERS_LOOP(workers)
        for (size_t worker = 0; worker < workers; worker++)
            for (size_t tile = worker; tile < tiles; tile += workers) {
                size_t at = tile * DECTOOL_TILE;
                NAME(dectool_histogram)(x + at, dectool_tile(count, at), low, span, shift, base,
                                        counts + worker * DECTOOL_BUCKETS);
            }
        for (size_t worker = 1; worker < workers; worker++)
            for (size_t bucket = 0; bucket < DECTOOL_BUCKETS; bucket++)
                counts[bucket] += counts[worker * DECTOOL_BUCKETS + bucket];
        size_t bucket = DECTOOL_BUCKETS, larger = skipped;
        while (bucket && larger + counts[bucket - 1] < k)
            larger += counts[--bucket];
        if (!bucket) {
            /* The sample misled: too few reach the floor. */
            low = 0;
            span = (BITS)MAGNITUDE;
            continue;
        }
        skipped = larger;
        low = ((base + (BITS)(bucket - 1))) << shift;
        span = ((BITS)1 << shift) - 1;
        if (++digit < sizeof shifts / sizeof *shifts)
            base = low >> shifts[digit];
    }
    *above = skipped;
    return low;
}

/* The places of one row, ascending; `room` holds the histograms, then two numbers for a tile. */
static void NAME(dectool_largest_of)(const REAL *x, size_t count, size_t k, size_t *room,
                                     int64_t *out)
{
    size_t larger, tiles = (count + DECTOOL_TILE - 1) / DECTOOL_TILE;
    BITS least = NAME(dectool_kth)(x, count, k, room, &larger);
    size_t *above = room, *equal = room + tiles, missing = k - larger;
    if (tiles == 1) {
        NAME(dectool_places)(x, count, 0, least, missing, out);
        return;
    }
    DECTOOL_PARALLEL(count)
    for (size_t tile = 0; tile < tiles; tile++)
        NAME(dectool_count)(x + tile * DECTOOL_TILE, dectool_tile(count, tile * DECTOOL_TILE),
                            least, &above[tile], &equal[tile]);
    size_t place = 0;
    for (size_t tile = 0; tile < tiles; tile++) {
        size_t here = above[tile], kept = equal[tile] < missing ? equal[tile] : missing;
        above[tile] = place;
        equal[tile] = kept;
        place += here + kept;
        missing -= kept;
    }
    DECTOOL_PARALLEL(count)
    for (size_t tile = 0; tile < tiles; tile++)
        NAME(dectool_places)(x + tile * DECTOOL_TILE, dectool_tile(count, tile * DECTOOL_TILE),
                             tile * DECTOOL_TILE, least, equal[tile], out + above[tile]);
}

/* The places of each row; 0 if memory is short. */
static int NAME(dectool_largest)(const REAL *x, size_t rows, size_t count, size_t k, int64_t *out)
{
    size_t tiles = (count + DECTOOL_TILE - 1) / DECTOOL_TILE;
    size_t workers = (size_t)dectool_threads(count);
    workers = workers < DECTOOL_WORKERS ? workers : DECTOOL_WORKERS;
    size_t histograms = workers * DECTOOL_BUCKETS;
    size_t *room = malloc((histograms > 2 * tiles ? histograms : 2 * tiles) * sizeof *room);
    if (!room)
        return 0;
    for (size_t row = 0; row < rows; row++)
        NAME(dectool_largest_of)(x + row * count, count, k, room, out + row * k);
    free(room);
    return 1;
}
