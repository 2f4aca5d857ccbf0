// Blocks of 256 elements, 8 of which are an entry of a grid; the reference is `block/iq2.rs`.

// `±factor·g` for four elements of an entry: the last four if `j` is no multiple of eight. `digits`
// and `signs` are those of all eight.
template <class Grid>
__device__ __forceinline__ void with_factor(unsigned digits, unsigned signs, unsigned j,
                                            float factor, float (&y)[4])
{
    const unsigned entry = grid_levels<Grid>(digits >> j % 8 * 4);
    numbers<SIGNED>(with_signs(entry, signs >> j % 8), y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= factor;
    }
}

// The factor of a sub-block with a scale of 4 bits.
__device__ __forceinline__ float factor(float d, unsigned sc)
{
    return d * (0.5f + number<0>(sc, 0)) * 0.25f;
}

// Eight signs from seven; the eighth makes the number of set bits even.
__device__ __forceinline__ unsigned eight_signs(unsigned seven)
{
    return seven | (__popc(seven) & 1) << 7;
}

// The factor where 32 elements have a byte of two scales.
template <class At>
__device__ __forceinline__ float nibble_factor(Block<At> block, unsigned j)
{
    const unsigned sc = block.template u8<At::scales>(j / 32) >> j / 16 % 2 * 4 & 0xF;
    return factor(block.template f16<At::d>(), sc);
}

struct IQ2_XXS {
    using At = layout::IQ2_XXS;
    using Table = GridTable<table::IQ2XXS>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned i = j / 8;
        const unsigned index = block.u8<At::qs>(i / 4 * 8 + i % 4);
        const unsigned scale_and_signs = block.word<At::qs>(i / 4 * 8 + 4);
        const unsigned signs = eight_signs(scale_and_signs >> i % 4 * 7 & 0x7F);
        const float scale = factor(block.f16<At::d>(), scale_and_signs >> 28);
        with_factor<table::IQ2XXS>(grid[index], signs, j, scale, y);
    }
};

struct IQ2_XS {
    using At = layout::IQ2_XS;
    using Table = GridTable<table::IQ2XS>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned word = block.u16<At::qs>(j / 8);
        const unsigned signs = eight_signs(word >> 9);
        with_factor<table::IQ2XS>(grid[word & 511], signs, j, nibble_factor(block, j), y);
    }
};

struct IQ2_S {
    using At = layout::IQ2_S;
    using Table = GridTable<table::IQ2S>;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *grid,
                                                float (&y)[4])
    {
        const unsigned i = j / 8;
        const unsigned high = block.u8<At::qh>(i / 4) >> i % 4 * 2 & 3;
        const unsigned index = block.u8<At::qs>(i) | high << 8;
        const unsigned signs = block.u8<At::qs>(32 + i);
        with_factor<table::IQ2S>(grid[index], signs, j, nibble_factor(block, j), y);
    }
};

KERNELS(dequantize, IQ2_XXS)
KERNELS(dequantize, IQ2_XS)
KERNELS(dequantize, IQ2_S)
