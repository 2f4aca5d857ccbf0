// Blocks of 256 elements of -1, 0 and 1; the reference is `block/ternary.rs`.

__device__ __forceinline__ void scaled(unsigned digits, float d, float (&y)[4])
{
    numbers<1>(digits, y);
    for (unsigned k = 0; k < 4; k++) {
        y[k] *= d;
    }
}

struct TQ1_0 {
    using At = layout::TQ1_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        static_assert(At::qh == At::qs + 48, "the digits are in one row of bytes");
        unsigned byte, n;
        if (j < 160) {
            byte = j % 32;
            n = j / 32;
        } else if (j < 240) {
            byte = 32 + j % 16;
            n = (j - 160) / 16;
        } else {
            byte = 48;
            n = (j - 240) / 4;
        }
        const unsigned power = n < 4 ? 0x1B090301 >> 8 * n & 0xFF : 81;
        const unsigned bytes = block.word<At::qs>(byte);
        // Every other byte at a time, so that there is room for the products: what is left of the
        // fraction after n digits, and from it the next digit.
        const unsigned even = ((bytes & 0x00FF00FF) * power & 0x00FF00FF) * 3 >> 8 & 0x00030003;
        const unsigned odd = ((bytes >> 8 & 0x00FF00FF) * power & 0x00FF00FF) * 3 & 0x03000300;
        scaled(even | odd, block.f16<At::d>(), y);
    }
};

struct TQ2_0 {
    using At = layout::TQ2_0;
    using Table = NoTable;

    static __device__ __forceinline__ void four(Block<At> block, unsigned j, const unsigned *,
                                                float (&y)[4])
    {
        const unsigned bytes = block.word<At::qs>(j / 128 * 32 + j % 32);
        scaled(bytes >> j / 32 % 4 * 2 & 0x03030303, block.f16<At::d>(), y);
    }
};

KERNELS(dequantize, TQ1_0)
KERNELS(dequantize, TQ2_0)
