/* Sums in a fixed order, and a bit for each sign, for one type.

   In a tile, number j is added to lane j mod 64, left to right, in double; the lanes of the tiles
   are added in order, then the numbers behind the last multiple of 64, and last the lanes by
   halves. */

#ifndef DECTOOL_SIGNS_H
#define DECTOOL_SIGNS_H

#include <stdlib.h>

#define DECTOOL_LANES 64

/* A part of a tile, small enough to stay in the first-level cache. */
#define DECTOOL_PART 4096

/* Eight flags, a byte each, become the bits of one byte. */
static inline uint8_t dectool_gather(const uint8_t *flags)
{
    uint64_t word;
    memcpy(&word, flags, sizeof word);
    return (uint8_t)((word * 0x0102040810204080u) >> 56);
}

#endif

static DECTOOL_WIDE void NAME(dectool_add_sizes)(const REAL *restrict x, size_t size, double unit,
                                                 double *restrict lanes)
{
    for (size_t j = 0; j + DECTOOL_LANES <= size; j += DECTOOL_LANES)
        for (size_t lane = 0; lane < DECTOOL_LANES; lane++)
            lanes[lane] += fabs((double)x[j + lane] * unit);
}

static DECTOOL_WIDE void NAME(dectool_add_squares)(const REAL *restrict x, size_t size, double unit,
                                                   double *restrict lanes)
{
    for (size_t j = 0; j + DECTOOL_LANES <= size; j += DECTOOL_LANES)
        for (size_t lane = 0; lane < DECTOOL_LANES; lane++) {
            double value = (double)x[j + lane] * unit;
            lanes[lane] += value * value;
        }
}

/* Bit j is 1 where x[j] is below zero; the bits behind the last are 0. */
static DECTOOL_WIDE void NAME(dectool_pack_signs)(const REAL *restrict x, uint8_t *restrict out,
                                                  size_t size)
{
    uint8_t flags[64];
    size_t start = 0;
    for (; start + 64 <= size; start += 64) {
        for (size_t j = 0; j < 64; j++)
            flags[j] = x[start + j] < 0;
        for (size_t byte = 0; byte < 8; byte++)
            out[start / 8 + byte] = dectool_gather(flags + 8 * byte);
    }
    for (; start < size; start += 8) {
        memset(flags, 0, 8);
        for (size_t j = 0; j < 8 && start + j < size; j++)
            flags[j] = x[start + j] < 0;
        out[start / 8] = dectool_gather(flags);
    }
}

/* Each number is the scale with the sign of its bit. */
static DECTOOL_WIDE void NAME(dectool_unpack_signs)(const uint8_t *restrict data,
                                                    REAL *restrict out, size_t size, REAL scale)
{
    BITS bits, *words = (BITS *)(void *)out;
    memcpy(&bits, &scale, sizeof bits);
    size_t whole = size / 8;
    for (size_t byte = 0; byte < whole; byte++)
        for (int bit = 0; bit < 8; bit++) {
            BITS sign = (BITS)data[byte] << (8 * sizeof bits - 1 - bit);
            BITS word = bits | (sign & ~(BITS)MAGNITUDE);
            memcpy(&words[8 * byte + bit], &word, sizeof word);
        }
    for (size_t j = 8 * whole; j < size; j++) {
        BITS sign = (BITS)(data[whole] >> (j & 7)) << (8 * sizeof bits - 1);
        BITS word = bits | sign;
        memcpy(&words[j], &word, sizeof word);
    }
}

/* One tile: its lanes, and where `out` is given its signs. */
static void NAME(dectool_tile_sums)(const REAL *x, size_t size, double unit, int square,
                                    double *lanes, uint8_t *out)
{
    for (size_t lane = 0; lane < DECTOOL_LANES; lane++)
        lanes[lane] = 0.0;
    for (size_t at = 0; at < size; at += DECTOOL_PART) {
        size_t part = size - at < DECTOOL_PART ? size - at : DECTOOL_PART;
        if (square)
            NAME(dectool_add_squares)(x + at, part, unit, lanes);
        else
            NAME(dectool_add_sizes)(x + at, part, unit, lanes);
        if (out)
            NAME(dectool_pack_signs)(x + at, out + at / 8, part);
    }
}

/* The sum of a row from the lanes of its tiles, which are changed. */
static double NAME(dectool_row_sum)(const REAL *x, size_t count, double unit, int square,
                                    double *lanes, size_t tiles)
{
    for (size_t tile = 1; tile < tiles; tile++)
        for (size_t lane = 0; lane < DECTOOL_LANES; lane++)
            lanes[lane] += lanes[tile * DECTOOL_LANES + lane];
    size_t whole = count / DECTOOL_LANES * DECTOOL_LANES;
    for (size_t j = whole; j < count; j++) {
        double value = (double)x[j] * unit;
        lanes[j - whole] += square ? value * value : fabs(value);
    }
    for (size_t width = DECTOOL_LANES / 2; width; width /= 2)
        for (size_t lane = 0; lane < width; lane++)
            lanes[lane] += lanes[lane + width];
    return lanes[0];
}

/* The sum of |unit x| or (unit x)^2 of each row; 0 if memory is short. Where `out` is given, the
   signs of each row go there, `stride` bytes apart. */
static int NAME(dectool_sums)(const REAL *x, const double *units, double *totals, size_t rows,
                              size_t count, int square, uint8_t *out, size_t stride)
{
    if (count <= DECTOOL_TILE) {
        DECTOOL_PARALLEL(rows * count)
        for (size_t row = 0; row < rows; row++) {
            double lanes[DECTOOL_LANES];
            NAME(dectool_tile_sums)(x + row * count, count, units[row], square, lanes,
                                    out ? out + row * stride : NULL);
            totals[row] = NAME(dectool_row_sum)(x + row * count, count, units[row], square, lanes, 1);
        }
        return 1;
    }
    size_t tiles = (count + DECTOOL_TILE - 1) / DECTOOL_TILE;
    double *lanes = malloc(tiles * DECTOOL_LANES * sizeof *lanes);
    if (!lanes)
        return 0;
    for (size_t row = 0; row < rows; row++) {
        const REAL *from = x + row * count;
        DECTOOL_PARALLEL(count)
        for (size_t at = 0; at < count; at += DECTOOL_TILE)
            NAME(dectool_tile_sums)(from + at, dectool_tile(count, at), units[row], square,
                                    lanes + at / DECTOOL_TILE * DECTOOL_LANES,
                                    out ? out + row * stride + at / 8 : NULL);
        totals[row] = NAME(dectool_row_sum)(from, count, units[row], square, lanes, tiles);
    }
    free(lanes);
    return 1;
}

static void NAME(dectool_spread_signs)(const uint8_t *data, REAL *out, size_t rows, size_t count,
                                       size_t stride)
{
    size_t tiles = (count + DECTOOL_TILE - 1) / DECTOOL_TILE;
    DECTOOL_PARALLEL(rows * count)
    for (size_t item = 0; item < rows * tiles; item++) {
        size_t row = item / tiles, at = item % tiles * DECTOOL_TILE;
        const uint8_t *sent = data + row * stride;
        REAL scale;
        memcpy(&scale, sent, sizeof scale);
        NAME(dectool_unpack_signs)(sent + sizeof scale + at / 8, out + row * count + at,
                                   dectool_tile(count, at), scale);
    }
}
