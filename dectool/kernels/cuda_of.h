/* Kernels for CUDA, for one type; read by NVRTC alone.

   A block of threads takes a chunk: as many blocks as all rows have chunks, of any number of threads
   up to 1024 that is a power of two; for signs any grid, of a multiple of 32. */

extern "C" __global__ void NAME(dectool_cuda_minmax_encode)(const REAL *x, uint8_t *out,
                                                            uint64_t count, uint64_t block)
{
    __shared__ KEY low[1024], high[1024];
    __shared__ struct NAME(dectool_scale) by;
    struct dectool_chunk here = dectool_chunk_at(blockIdx.x, count, block);
    uint32_t thread = threadIdx.x, threads = blockDim.x;
    const REAL *chunk = x + here.start;
    uint8_t *sent = out + here.sent, *codes = sent + DECTOOL_HEADER;
    KEY least = (KEY)MAGNITUDE, most = -(KEY)MAGNITUDE - 1;
    for (uint64_t i = thread; i < here.size; i += threads) {
        KEY key = NAME(dectool_key)(chunk[i]);
        least = key < least ? key : least;
        most = key > most ? key : most;
    }
    low[thread] = least;
    high[thread] = most;
    __syncthreads();
    for (uint32_t half = threads / 2; half; half /= 2) {
        if (thread < half) {
            low[thread] = low[thread + half] < low[thread] ? low[thread + half] : low[thread];
            high[thread] = high[thread + half] > high[thread] ? high[thread + half] : high[thread];
        }
        __syncthreads();
    }
    if (thread == 0)
        by = NAME(dectool_write_header)(sizeof(REAL) == 8 ? DECTOOL_FLOAT64 : DECTOOL_FLOAT32, sent,
                                        low[0], high[0]);
    __syncthreads();
    for (uint64_t i = thread; i < dectool_minmax_stride(here.size) - DECTOOL_HEADER; i += threads)
        codes[i] = by.finite && i < here.size
                       ? NAME(dectool_minmax_code)(chunk[i], by.shift, by.scale, by.lower)
                       : 0;
}

/* Write the numbers where `add` is 0, else add weight times them. */
extern "C" __global__ void NAME(dectool_cuda_minmax_decode)(const uint8_t *data, REAL *out,
                                                            uint64_t count, uint64_t block, int add,
                                                            REAL weight)
{
    struct dectool_chunk here = dectool_chunk_at(blockIdx.x, count, block);
    const uint8_t *sent = data + here.sent;
    const struct NAME(dectool_scale) by = NAME(dectool_read_header)(
        sizeof(REAL) == 8 ? DECTOOL_FLOAT64 : DECTOOL_FLOAT32, sent);
    int plain = by.shift == 1 && !by.constant;
    for (uint64_t i = threadIdx.x; i < here.size; i += blockDim.x) {
        uint8_t code = sent[DECTOOL_HEADER + i];
        REAL value = plain ? NAME(dectool_minmax_number)(code, by.scale, by.lower)
                           : NAME(dectool_minmax_odd)(code, &by);
        if (add)
            out[here.start + i] += weight * value;
        else
            out[here.start + i] = value;
    }
}

/* The signs of one row, 32 at a time; `out` is four-byte aligned and its last word is filled up. */
extern "C" __global__ void NAME(dectool_cuda_pack_signs)(const REAL *x, uint32_t *out,
                                                         uint64_t count)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x, whole = (count + 31) / 32 * 32;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < whole; i += step) {
        uint32_t word = __ballot_sync(0xffffffffu, i < count && x[i] < 0);
        if (i % 32 == 0)
            out[i / 32] = word;
    }
}
