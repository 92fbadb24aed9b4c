/* Min-max codes of 8 bits for one type; see dectool.compression.MinMax8 for the format. */

#ifndef DECTOOL_MINMAX_H
#define DECTOOL_MINMAX_H

#define DECTOOL_HEADER 32
#define DECTOOL_LEVELS 255

DECTOOL_INLINE uint64_t dectool_minmax_stride(uint64_t block)
{
    return DECTOOL_HEADER + (block + 31) / 32 * 32;
}

/* The bytes of a row. */
DECTOOL_INLINE uint64_t dectool_minmax_size(uint64_t count, uint64_t block)
{
    uint64_t rest = count % block;
    return count / block * dectool_minmax_stride(block) + (rest ? dectool_minmax_stride(rest) : 0);
}

/* Where a chunk begins, in numbers and in bytes, and how many numbers it has. */
struct dectool_chunk {
    uint64_t start, size, sent;
};

/* The chunk of that number, counted through all rows. */
DECTOOL_INLINE struct dectool_chunk dectool_chunk_at(uint64_t item, uint64_t count, uint64_t block)
{
    uint64_t chunks = (count + block - 1) / block, row = item / chunks, chunk = item % chunks;
    uint64_t before = chunk * block;
    struct dectool_chunk at;
    at.start = row * count + before;
    at.size = count - before < block ? count - before : block;
    at.sent = row * dectool_minmax_size(count, block) + chunk * dectool_minmax_stride(block);
    return at;
}

#endif

/* What turns numbers of a chunk into codes and back: code = rint(x * shift * scale) - lower. */
struct NAME(dectool_scale) {
    REAL scale, upper, lower, shift, low, high;
    int constant, finite;
};

DECTOOL_INLINE struct NAME(dectool_scale) NAME(dectool_minmax_scale)(REAL low, REAL high)
{
    struct NAME(dectool_scale) by;
    by.finite = low >= -LARGEST && low <= LARGEST && high >= -LARGEST && high <= LARGEST;
    by.low = low;
    by.high = high;
    low = by.finite ? low : 0;
    high = by.finite ? high : 0;
    by.constant = low == high;
    REAL below = low < 0 ? -low : low, above = high < 0 ? -high : high;
    by.shift = (below > above ? below : above) >= HUGE_WIDTH ? SHRINK : ONE;
    if (!by.constant && high - low < TINY_WIDTH)
        by.shift = GROW;
    low *= by.shift;
    high *= by.shift;
    REAL width = high - low, epsilon = (REAL)1e-7;
    if (!by.constant && width < epsilon)
        epsilon = width;
    by.scale = (REAL)((double)DECTOOL_LEVELS / (double)(width + epsilon));
    by.upper = RINT(high * by.scale);
    by.lower = by.upper - DECTOOL_LEVELS;
    by.finite = by.finite && by.upper >= -LARGEST && by.upper <= LARGEST;
    return by;
}

DECTOOL_INLINE uint8_t NAME(dectool_minmax_code)(REAL x, REAL shift, REAL scale, REAL lower)
{
    REAL level = RINT(x * shift * scale) - lower;
    level = level > 0 ? level : 0;
    level = level < DECTOOL_LEVELS ? level : DECTOOL_LEVELS;
    return (uint8_t)(int32_t)level;
}

DECTOOL_INLINE REAL NAME(dectool_minmax_number)(uint8_t code, REAL scale, REAL lower)
{
    return ((REAL)(int32_t)code + lower) / scale;
}

/* The same for a chunk whose range is constant or shifted. */
DECTOOL_INLINE REAL NAME(dectool_minmax_odd)(uint8_t code, const struct NAME(dectool_scale) * by)
{
    REAL most = LARGEST * (by->shift < 1 ? by->shift : 1);
    REAL value = NAME(dectool_minmax_number)(code, by->scale, by->lower);
    value = value < -most ? -most : value > most ? most : value;
    return by->constant ? by->low : value / by->shift;
}

/* Signed integers that order as the numbers do, so that a minimum can be vectorised. */
DECTOOL_INLINE KEY NAME(dectool_key)(REAL x)
{
    KEY bits;
    memcpy(&bits, &x, sizeof bits);
    return bits ^ ((bits >> (8 * sizeof bits - 1)) & (KEY)MAGNITUDE);
}

DECTOOL_INLINE REAL NAME(dectool_of_key)(KEY key)
{
    REAL value;
    key ^= (key >> (8 * sizeof key - 1)) & (KEY)MAGNITUDE;
    memcpy(&value, &key, sizeof value);
    return value + 0;
}

/* Write the header of a chunk, from the keys of its range, and return its scale. */
DECTOOL_INLINE struct NAME(dectool_scale)
    NAME(dectool_write_header)(enum dectool_kind kind, uint8_t *out, KEY least, KEY most)
{
    struct NAME(dectool_scale) by =
        NAME(dectool_minmax_scale)(NAME(dectool_of_key)(least), NAME(dectool_of_key)(most));
    int finite =
        by.low >= -LARGEST && by.low <= LARGEST && by.high >= -LARGEST && by.high <= LARGEST;
    REAL nan = (REAL)dectool_of_bits_float32(0x7fc00000u);
    REAL ends[2] = {finite ? by.low : nan, finite ? by.high : nan};
    memset(out, 0, DECTOOL_HEADER);
    if (kind == DECTOOL_FLOAT16 || kind == DECTOOL_BFLOAT16) {
        uint16_t halves[2];
        for (int i = 0; i < 2; i++)
            halves[i] = kind == DECTOOL_FLOAT16 ? dectool_to_float16((float)ends[i])
                                                : dectool_to_bfloat16((float)ends[i]);
        memcpy(out, halves, sizeof halves);
    } else
        memcpy(out, ends, sizeof ends);
    return by;
}

DECTOOL_INLINE struct NAME(dectool_scale)
    NAME(dectool_read_header)(enum dectool_kind kind, const uint8_t *data)
{
    REAL ends[2];
    if (kind == DECTOOL_FLOAT16 || kind == DECTOOL_BFLOAT16) {
        uint16_t halves[2];
        memcpy(halves, data, sizeof halves);
        for (int i = 0; i < 2; i++)
            ends[i] = (REAL)(kind == DECTOOL_FLOAT16 ? dectool_from_float16(halves[i])
                                                     : dectool_from_bfloat16(halves[i]));
    } else
        memcpy(ends, data, sizeof ends);
    return NAME(dectool_minmax_scale)(ends[0], ends[1]);
}

#ifndef __CUDACC_RTC__

static DECTOOL_WIDE void NAME(dectool_range)(const REAL *restrict x, size_t size, KEY *least,
                                             KEY *most)
{
    KEY low = *least, high = *most;
    for (size_t i = 0; i < size; i++) {
        KEY key = NAME(dectool_key)(x[i]);
        low = key < low ? key : low;
        high = key > high ? key : high;
    }
    *least = low;
    *most = high;
}

static DECTOOL_WIDE void NAME(dectool_quantise)(const REAL *restrict x, uint8_t *restrict codes,
                                                size_t size, const struct NAME(dectool_scale) * by)
{
    const REAL shift = by->shift, scale = by->scale, lower = by->lower;
    if (!by->finite)
        memset(codes, 0, size);
    else if (shift == 1)
        for (size_t i = 0; i < size; i++)
            codes[i] = NAME(dectool_minmax_code)(x[i], 1, scale, lower);
    else
        for (size_t i = 0; i < size; i++)
            codes[i] = NAME(dectool_minmax_code)(x[i], shift, scale, lower);
}

static DECTOOL_WIDE void NAME(dectool_dequantise)(const uint8_t *restrict codes, REAL *restrict out,
                                                  size_t size,
                                                  const struct NAME(dectool_scale) * by)
{
    const REAL scale = by->scale, lower = by->lower;
    if (by->shift == 1 && !by->constant)
        for (size_t i = 0; i < size; i++)
            out[i] = NAME(dectool_minmax_number)(codes[i], scale, lower);
    else
        for (size_t i = 0; i < size; i++)
            out[i] = NAME(dectool_minmax_odd)(codes[i], by);
}

/* total += weight * number, the product rounded first. */
static DECTOOL_WIDE void NAME(dectool_dequantise_add)(const uint8_t *restrict codes,
                                                      REAL *restrict total, size_t size,
                                                      const struct NAME(dectool_scale) * by,
                                                      REAL weight)
{
    const REAL scale = by->scale, lower = by->lower;
    if (by->shift == 1 && !by->constant)
        for (size_t i = 0; i < size; i++)
            total[i] += weight * NAME(dectool_minmax_number)(codes[i], scale, lower);
    else
        for (size_t i = 0; i < size; i++)
            total[i] += weight * NAME(dectool_minmax_odd)(codes[i], by);
}

static void NAME(dectool_encode_chunk)(enum dectool_kind kind, const REAL *x, uint8_t *sent,
                                       size_t size)
{
    KEY least = (KEY)MAGNITUDE, most = -(KEY)MAGNITUDE - 1;
    NAME(dectool_range)(x, size, &least, &most);
    struct NAME(dectool_scale) by = NAME(dectool_write_header)(kind, sent, least, most);
    NAME(dectool_quantise)(x, sent + DECTOOL_HEADER, size, &by);
}

/* The same for a chunk that threads share. */
static void NAME(dectool_encode_tiles)(enum dectool_kind kind, const REAL *x, uint8_t *sent,
                                       size_t size)
{
    KEY least = (KEY)MAGNITUDE, most = -(KEY)MAGNITUDE - 1;
    DECTOOL_RANGES(size)
    for (size_t at = 0; at < size; at += DECTOOL_TILE)
        NAME(dectool_range)(x + at, dectool_tile(size, at), &least, &most);
    struct NAME(dectool_scale) by = NAME(dectool_write_header)(kind, sent, least, most);
    DECTOOL_PARALLEL(size)
    for (size_t at = 0; at < size; at += DECTOOL_TILE)
        NAME(dectool_quantise)(x + at, sent + DECTOOL_HEADER + at, dectool_tile(size, at), &by);
}

static void NAME(dectool_encode_item)(enum dectool_kind kind, const REAL *x, uint8_t *out,
                                      size_t item, size_t count, size_t block)
{
    struct dectool_chunk at = dectool_chunk_at(item, count, block);
    uint8_t *sent = out + at.sent;
    if (block > DECTOOL_TILE)
        NAME(dectool_encode_tiles)(kind, x + at.start, sent, at.size);
    else
        NAME(dectool_encode_chunk)(kind, x + at.start, sent, at.size);
    size_t end = DECTOOL_HEADER + at.size;
    memset(sent + end, 0, dectool_minmax_stride(at.size) - end);
}

/* Threads share the numbers of a large chunk, one chunk after the other, or else the chunks. */
static void NAME(dectool_minmax_encode)(enum dectool_kind kind, const REAL *x, uint8_t *out,
                                        size_t rows, size_t count, size_t block)
{
    size_t items = rows * ((count + block - 1) / block);
    if (block > DECTOOL_TILE) {
        for (size_t item = 0; item < items; item++)
            NAME(dectool_encode_item)(kind, x, out, item, count, block);
        return;
    }
    DECTOOL_PARALLEL(rows * count)
    for (size_t item = 0; item < items; item++)
        NAME(dectool_encode_item)(kind, x, out, item, count, block);
}

/* Write the numbers of a part of a chunk, or, where `weight` is given, add weight times them. */
static void NAME(dectool_decode_tile)(const uint8_t *codes, REAL *out, size_t size,
                                      const struct NAME(dectool_scale) * by, const REAL *weight)
{
    if (weight)
        NAME(dectool_dequantise_add)(codes, out, size, by, *weight);
    else
        NAME(dectool_dequantise)(codes, out, size, by);
}

static void NAME(dectool_decode_tiles)(const uint8_t *codes, REAL *out, size_t size,
                                       const struct NAME(dectool_scale) * by, const REAL *weight)
{
    DECTOOL_PARALLEL(size)
    for (size_t at = 0; at < size; at += DECTOOL_TILE)
        NAME(dectool_decode_tile)(codes + at, out + at, dectool_tile(size, at), by, weight);
}

static void NAME(dectool_decode_item)(enum dectool_kind kind, const uint8_t *data, REAL *out,
                                      size_t item, size_t count, size_t block, const REAL *weight)
{
    struct dectool_chunk at = dectool_chunk_at(item, count, block);
    const uint8_t *sent = data + at.sent, *codes = sent + DECTOOL_HEADER;
    const struct NAME(dectool_scale) by = NAME(dectool_read_header)(kind, sent);
    if (block > DECTOOL_TILE)
        NAME(dectool_decode_tiles)(codes, out + at.start, at.size, &by, weight);
    else
        NAME(dectool_decode_tile)(codes, out + at.start, at.size, &by, weight);
}

static void NAME(dectool_minmax_decode)(enum dectool_kind kind, const uint8_t *data, REAL *out,
                                        size_t rows, size_t count, size_t block,
                                        const REAL *weight)
{
    size_t items = rows * ((count + block - 1) / block);
    if (block > DECTOOL_TILE) {
        for (size_t item = 0; item < items; item++)
            NAME(dectool_decode_item)(kind, data, out, item, count, block, weight);
        return;
    }
    DECTOOL_PARALLEL(rows * count)
    for (size_t item = 0; item < items; item++)
        NAME(dectool_decode_item)(kind, data, out, item, count, block, weight);
}

#endif
