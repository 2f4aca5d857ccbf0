// What is the same for all types: outputs, bytes made into numbers, and the way a kernel goes
// through memory.
//
// Each kernel is `extern "C" void <type>_<output>(blocks, out, count)`, for `count` whole blocks at
// any address, and an output at a multiple of 16 bytes. It is launched with THREADS threads in a
// thread block and any number of those.
//
// In front of this file stand `device.cuh` and what `source.rs` generates: THREADS, TILE (elements
// that a thread block takes at a time), `namespace layout` with the place of each field, and
// `namespace table` with grids and levels.
//
// All numbers are those of the reference bit for bit: this is compiled without contraction of
// multiplications and additions, and the places that fuse them say why that rounds the same.

// Outputs. A thread writes a group, 16 bytes, and a warp 512 in a row.

struct f32 {
    static constexpr unsigned BYTES = 4, GROUP = 16 / BYTES;

    static __device__ __forceinline__ void store(unsigned char *at, const float (&y)[GROUP])
    {
        store_u128(at, uint4{__float_as_uint(y[0]), __float_as_uint(y[1]), __float_as_uint(y[2]),
                             __float_as_uint(y[3])});
    }

    static __device__ __forceinline__ void store_one(unsigned char *at, float y)
    {
        store_u32(at, __float_as_uint(y));
    }
};

struct f16 {
    static constexpr unsigned BYTES = 2, GROUP = 16 / BYTES;

    static __device__ __forceinline__ void store(unsigned char *at, const float (&y)[GROUP])
    {
        store_u128(at, uint4{f16x2_of(y[0], y[1]), f16x2_of(y[2], y[3]), f16x2_of(y[4], y[5]),
                             f16x2_of(y[6], y[7])});
    }

    static __device__ __forceinline__ void store_one(unsigned char *at, float y)
    {
        store_u16(at, f16x2_of(y, 0) & 0xFFFF);
    }
};

struct bf16 {
    static constexpr unsigned BYTES = 2, GROUP = 16 / BYTES;

    static __device__ __forceinline__ void store(unsigned char *at, const float (&y)[GROUP])
    {
        store_u128(at, uint4{bf16x2_of(y[0], y[1]), bf16x2_of(y[2], y[3]), bf16x2_of(y[4], y[5]),
                             bf16x2_of(y[6], y[7])});
    }

    static __device__ __forceinline__ void store_one(unsigned char *at, float y)
    {
        store_u16(at, bf16x2_of(y, 0) & 0xFFFF);
    }
};

// Bytes. Four of them are in a word, the first in the low bits.

// Byte `k` of a word less `bias`, as a number. Put below the exponent of 2^23 a byte counts in ones,
// so that the subtraction is exact; no conversion instruction is as fast.
template <unsigned bias>
__device__ __forceinline__ float number(unsigned word, unsigned k)
{
    const unsigned bits = permute(word, 0x4B000000, 0x7650 + k);
    return __uint_as_float(bits) - (8388608.0f + bias);
}

// The same of a whole word.
template <unsigned bias>
__device__ __forceinline__ void numbers(unsigned word, float (&q)[4])
{
    for (unsigned k = 0; k < 4; k++) {
        q[k] = number<bias>(word, k);
    }
}

// Bit `k` of the four low bits in byte `k`, as 0 or 1.
__device__ __forceinline__ unsigned spread(unsigned four_bits)
{
    return (four_bits & 0xF) * 0x00204081 & 0x01010101;
}

// What signed bytes and the bytes of grids and levels are biased by.
constexpr unsigned SIGNED = 128;

// Four signed bytes, biased.
__device__ __forceinline__ unsigned biased(unsigned word)
{
    return word ^ 0x80808080;
}

// Bytes biased by SIGNED, negated where the bit of `signs` is set. None of them is zero, so that the
// product with a factor has the sign that negating the product gives it.
__device__ __forceinline__ unsigned with_signs(unsigned word, unsigned signs)
{
    const unsigned negative = spread(signs);
    // 128 + g becomes 127 - g, and one more.
    return (word ^ negative * 0xFF) + negative;
}

// An element's digit chooses one of 16 levels: the levels of four digits, which are the low bits of
// the bytes of a word.
template <class Levels>
__device__ __forceinline__ unsigned levels(unsigned digits)
{
    const unsigned pairs = digits | digits >> 4;
    const unsigned selector = permute(pairs, 0, 0x4420);
    const unsigned low = permute(Levels::w0, Levels::w1, selector & 0x7777);
    const unsigned high = permute(Levels::w2, Levels::w3, selector & 0x7777);
    return permute(low, high, 0x3210 | (selector & 0x8888) >> 1);
}

// The block at an address of shared memory; `At` is its layout, and FIELD one of the offsets there.
// The first block is at a multiple of 16, the others at multiples of their length from there.
template <class At>
struct Block {
    const unsigned char *bytes;

    template <unsigned FIELD>
    __device__ __forceinline__ unsigned u8(unsigned index = 0) const
    {
        return bytes[FIELD + index];
    }

    // The 16 bits at element `index` of a field of such.
    template <unsigned FIELD>
    __device__ __forceinline__ unsigned u16(unsigned index = 0) const
    {
        const unsigned char *at = bytes + FIELD + 2 * index;
        if constexpr ((At::BYTES | FIELD) % 2 == 0) {
            return load_u16(at);
        } else {
            return at[0] | static_cast<unsigned>(at[1]) << 8;
        }
    }

    template <unsigned FIELD>
    __device__ __forceinline__ float f16(unsigned index = 0) const
    {
        return float_of_f16(u16<FIELD>(index));
    }

    // The four bytes at byte `offset` of a field, a multiple of four.
    template <unsigned FIELD>
    __device__ __forceinline__ unsigned word(unsigned offset = 0) const
    {
        const unsigned char *at = bytes + FIELD + offset;
        if constexpr ((At::BYTES | FIELD) % 4 == 0) {
            return load_u32(at);
        } else if constexpr ((At::BYTES | FIELD) % 2 == 0) {
            return load_u16(at) | load_u16(at + 2) << 16;
        } else {
            return at[0] | static_cast<unsigned>(at[1]) << 8 | static_cast<unsigned>(at[2]) << 16 |
                   static_cast<unsigned>(at[3]) << 24;
        }
    }
};

// A table of words that a type looks up; most have none.
struct NoTable {
    static constexpr unsigned WORDS = 0;
};

// A grid: for each entry a word with a digit in each four bits, the first element's lowest.
template <class Grid>
struct GridTable {
    static constexpr unsigned WORDS = Grid::LEN;

    static __device__ __forceinline__ const unsigned *words() { return Grid::digits(); }
};

// Four elements of an entry, biased, from its digits.
template <class Grid>
__device__ __forceinline__ unsigned grid_levels(unsigned digits)
{
    return permute(Grid::w0, Grid::w1, digits);
}

// Copies bytes, MOST at most, to shared memory. 16 at a time if the address allows it, and it does
// in a file whose data starts at a multiple of 32 bytes; or else one by one, in neighbouring threads.
template <unsigned MOST>
__device__ __forceinline__ void copy_to_shared(unsigned char *shared, const unsigned char *from,
                                               unsigned len)
{
    unsigned done = 0;
    if (reinterpret_cast<unsigned long long>(from) % 16 == 0) {
        done = len / 16 * 16;
        // All loads are under way before the first store waits for one.
        constexpr unsigned TIMES = (MOST / 16 + THREADS - 1) / THREADS;
        uint4 words[TIMES];
#pragma unroll
        for (unsigned k = 0; k < TIMES; k++) {
            const unsigned i = 16 * (threadIdx.x + k * THREADS);
            words[k] = i < done ? load_u128(from + i) : uint4{0, 0, 0, 0};
        }
#pragma unroll
        for (unsigned k = 0; k < TIMES; k++) {
            const unsigned i = 16 * (threadIdx.x + k * THREADS);
            if (i < done) {
                store_u128(shared + i, words[k]);
            }
        }
    }
#pragma unroll 1
    for (unsigned i = done + threadIdx.x; i < len; i += THREADS) {
        shared[i] = from[i];
    }
}

// Types of blocks. Type has
//   At     its layout,
//   Table  what it looks up, in shared memory during a kernel,
//   four   the elements `j` to `j + 3` of a block, `j` a multiple of four.
//
// Tile by tile, the blocks are copied to shared memory as they are, in wide loads that do not care
// where a block starts; then each thread reads from there what its group of elements needs.
template <class Type, class Output>
__device__ __forceinline__ void dequantize(const unsigned char *blocks, unsigned char *out,
                                           unsigned long long count)
{
    using At = typename Type::At;
    using Table = typename Type::Table;
    // So that each tile of an aligned input is aligned.
    static_assert(TILE % At::LEN == 0 && TILE / At::LEN * At::BYTES % 16 == 0, "a tile's blocks");
    // Elements that all threads write at a time: so that a thread's are always at the same place of
    // a block, and what depends on the place alone is computed once.
    constexpr unsigned STEP = THREADS * Output::GROUP;
    static_assert(STEP % At::LEN == 0 && At::LEN % Output::GROUP == 0, "groups in blocks");
    constexpr unsigned TILE_BLOCKS = TILE / At::LEN, TILE_BYTES = TILE_BLOCKS * At::BYTES;

    __shared__ __align__(16) unsigned char tile[TILE_BYTES];
    __shared__ __align__(16) unsigned lookup[Table::WORDS == 0 ? 1 : Table::WORDS];
    if constexpr (Table::WORDS != 0) {
        copy_to_shared<4 * Table::WORDS>(
            reinterpret_cast<unsigned char *>(lookup),
            reinterpret_cast<const unsigned char *>(Table::words()), 4 * Table::WORDS);
    }

    const unsigned own = threadIdx.x * Output::GROUP;
    const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * TILE_BLOCKS;
    unsigned long long first = blockIdx.x * static_cast<unsigned long long>(TILE_BLOCKS);
    for (; first < count; first += step) {
        const unsigned long long left = count - first;
        const unsigned here = left < TILE_BLOCKS ? static_cast<unsigned>(left) : TILE_BLOCKS;
        copy_to_shared<TILE_BYTES>(tile, blocks + first * At::BYTES, here * At::BYTES);
        __syncthreads();

        Block<At> block{tile + own / At::LEN * At::BYTES};
        unsigned char *to = out + first * (At::LEN * Output::BYTES) + own * Output::BYTES;
#pragma unroll 1
        for (unsigned i = own; i < here * At::LEN; i += STEP) {
            float y[Output::GROUP];
            for (unsigned k = 0; k < Output::GROUP; k += 4) {
                float four[4];
                Type::four(block, own % At::LEN | k, lookup, four);
                for (unsigned l = 0; l < 4; l++) {
                    y[k + l] = four[l];
                }
            }
            Output::store(to, y);
            block.bytes += STEP / At::LEN * At::BYTES;
            to += STEP * Output::BYTES;
        }
        // Before the next tile is put there.
        __syncthreads();
    }
}

// Plain types. Type has
//   At     its layout,
//   value  the number that `At::BYTES` bytes are, the first in the low bits of the first word.
//
// A thread loads what it stores: groups where the address allows wide loads, and elements where not.
template <class Type, class Output>
__device__ __forceinline__ void convert(const unsigned char *numbers, unsigned char *out,
                                        unsigned long long count)
{
    constexpr unsigned BYTES = Type::At::BYTES, GROUP = Output::GROUP;
    constexpr unsigned LOAD = GROUP * BYTES < 16 ? GROUP * BYTES : 16;
    const bool is_aligned = reinterpret_cast<unsigned long long>(numbers) % LOAD == 0;
    const unsigned long long grouped = is_aligned ? count / GROUP * GROUP : 0;
    const unsigned long long threads = static_cast<unsigned long long>(gridDim.x) * THREADS;
    const unsigned long long thread =
        blockIdx.x * static_cast<unsigned long long>(THREADS) + threadIdx.x;

#pragma unroll 1
    for (unsigned long long i = thread * GROUP; i < grouped; i += threads * GROUP) {
        // A word more, since values of a byte or two are cut out of one.
        unsigned words[GROUP * BYTES / 4 + 1];
        for (unsigned k = 0; k < GROUP * BYTES; k += LOAD) {
            const unsigned char *const from = numbers + i * BYTES + k;
            if constexpr (LOAD == 16) {
                const uint4 load = load_u128(from);
                words[k / 4] = load.x;
                words[k / 4 + 1] = load.y;
                words[k / 4 + 2] = load.z;
                words[k / 4 + 3] = load.w;
            } else if constexpr (LOAD == 8) {
                const uint2 load = load_u64(from);
                words[k / 4] = load.x;
                words[k / 4 + 1] = load.y;
            } else {
                words[k / 4] = load_u32(from);
            }
        }
        words[GROUP * BYTES / 4] = 0;
        float y[GROUP];
        for (unsigned k = 0; k < GROUP; k++) {
            const unsigned at = k * BYTES;
            y[k] = Type::value(words[at / 4] >> 8 * (at % 4), words[at / 4 + 1]);
        }
        Output::store(out + i * Output::BYTES, y);
    }

#pragma unroll 1
    for (unsigned long long i = grouped + thread; i < count; i += threads) {
        unsigned words[2] = {0, 0};
        for (unsigned k = 0; k < BYTES; k++) {
            words[k / 4] |= static_cast<unsigned>(numbers[i * BYTES + k]) << 8 * (k % 4);
        }
        Output::store_one(out + i * Output::BYTES, Type::value(words[0], words[1]));
    }
}

// The three kernels of a type; FRAME is `dequantize` or `convert`. While some thread blocks wait for
// a tile, others have to write: 8 of them fit on a multiprocessor if a thread takes 32 registers.
#define KERNEL(FRAME, TYPE, OUTPUT)                                                                \
    extern "C" __global__ void __launch_bounds__(THREADS, 8)                                       \
        TYPE##_##OUTPUT(const unsigned char *blocks, unsigned char *out, unsigned long long count) \
    {                                                                                              \
        FRAME<TYPE, OUTPUT>(blocks, out, count);                                                   \
    }

#define KERNELS(FRAME, TYPE)     \
    KERNEL(FRAME, TYPE, f32)     \
    KERNEL(FRAME, TYPE, f16)     \
    KERNEL(FRAME, TYPE, bf16)
