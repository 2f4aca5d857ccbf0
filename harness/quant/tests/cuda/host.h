// A model of the machine, in place of `device.cuh`: the kernels as C++, one thread of the host for
// all threads of a launch.
//
// A thread of a thread block is a context of its own, with its own stack, that runs until the next
// __syncthreads() or to its end, and no other runs meanwhile. So what a thread reads from shared
// memory without a barrier in between is what the order of the threads makes of it, and the order is
// the launch's choice: tests run every kernel in several. Thread blocks come one after the other,
// forwards or backwards, and find in shared memory what the last one left there.

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(threads, blocks)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ static thread_local

struct dim3 {
    unsigned x, y, z;
};
struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};

static thread_local dim3 threadIdx, blockIdx, gridDim;

// CUDA's functions, as its manual has them.

[[maybe_unused]] static float __uint_as_float(unsigned bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

[[maybe_unused]] static unsigned __float_as_uint(float number)
{
    unsigned bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

[[maybe_unused]] static double __hiloint2double(int high, int low)
{
    const unsigned long long bits =
        static_cast<unsigned long long>(static_cast<unsigned>(high)) << 32 | static_cast<unsigned>(low);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

[[maybe_unused]] static float __double2float_rn(double number) { return static_cast<float>(number); }
[[maybe_unused]] static float __int2float_rn(int number) { return static_cast<float>(number); }
[[maybe_unused]] static float __ll2float_rn(long long number) { return static_cast<float>(number); }
[[maybe_unused]] static float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
[[maybe_unused]] static int __popc(unsigned bits) { return __builtin_popcount(bits); }

// The functions of `device.cuh`. An address that a GPU would refuse ends the process, and so does a
// load across the end of the blocks, which no page shows if it ends at the next multiple of 16.

static thread_local const unsigned char *blocks_start, *blocks_end;

template <unsigned len>
static void check_address(const unsigned char *at)
{
    const bool is_aligned = reinterpret_cast<unsigned long long>(at) % len == 0;
    const bool is_across = at >= blocks_start && at < blocks_end + 16 && at + len > blocks_end;
    if (!is_aligned || is_across) {
        fprintf(stderr, "%u bytes at %p, %s\n", len, static_cast<const void *>(at),
                is_across ? "across the end of the blocks" : "which is no multiple of that");
        abort();
    }
}

template <class T>
static T load(const unsigned char *at)
{
    check_address<sizeof(T)>(at);
    T number;
    memcpy(&number, at, sizeof number);
    return number;
}

template <class T>
static void store(unsigned char *at, T number)
{
    check_address<sizeof(T)>(at);
    memcpy(at, &number, sizeof number);
}

[[maybe_unused]] static unsigned load_u16(const unsigned char *at) { return load<unsigned short>(at); }
[[maybe_unused]] static unsigned load_u32(const unsigned char *at) { return load<unsigned>(at); }
[[maybe_unused]] static uint2 load_u64(const unsigned char *at) { return load<uint2>(at); }
[[maybe_unused]] static uint4 load_u128(const unsigned char *at) { return load<uint4>(at); }

[[maybe_unused]] static void store_u16(unsigned char *at, unsigned word)
{
    store(at, static_cast<unsigned short>(word));
}

[[maybe_unused]] static void store_u32(unsigned char *at, unsigned word) { store(at, word); }
[[maybe_unused]] static void store_u128(unsigned char *at, uint4 words) { store(at, words); }

[[maybe_unused]] static unsigned permute(unsigned low, unsigned high, unsigned which)
{
    if ((which & 0x8888) != 0) {
        fprintf(stderr, "the bytes %#x of two words\n", which);
        abort();
    }
    const unsigned long long bytes = static_cast<unsigned long long>(high) << 32 | low;
    unsigned chosen = 0;
    for (unsigned i = 0; i < 4; i++) {
        chosen |= static_cast<unsigned>(bytes >> 8 * (which >> 4 * i & 7) & 0xFF) << 8 * i;
    }
    return chosen;
}

[[maybe_unused]] static float float_of_f16(unsigned bits)
{
    const unsigned sign = (bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 0x3FF;
    if (exponent == 0) {
        const float magnitude = ldexpf(static_cast<float>(mantissa), -24);
        return __uint_as_float(__float_as_uint(magnitude) | sign);
    }
    const unsigned wide = exponent == 31 ? 255 : exponent + 127 - 15;
    return __uint_as_float(sign | wide << 23 | mantissa << 13);
}

static unsigned f16_of(float number)
{
    const unsigned bits = __float_as_uint(number), sign = bits >> 16 & 0x8000;
    const float magnitude = fabsf(number);
    if (isnan(number)) {
        return 0x7FFF;
    }
    if (magnitude >= 65520.0f) {
        return sign | 0x7C00;
    }
    // The last place of half precision at this magnitude, at least that of the subnormal numbers.
    int exponent;
    frexpf(magnitude, &exponent);
    const int place = exponent - 11 < -24 ? -24 : exponent - 11;
    const float rounded = ldexpf(nearbyintf(ldexpf(magnitude, -place)), place);
    if (rounded < 0x1p-14f) {
        return sign | static_cast<unsigned>(ldexpf(rounded, 24));
    }
    return sign | (__float_as_uint(rounded) - (112u << 23)) >> 13;
}

static unsigned bf16_of(float number)
{
    const unsigned bits = __float_as_uint(number);
    if (isnan(number)) {
        return 0x7FFF;
    }
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

[[maybe_unused]] static unsigned f16x2_of(float first, float second)
{
    return f16_of(first) | f16_of(second) << 16;
}

[[maybe_unused]] static unsigned bf16x2_of(float first, float second)
{
    return bf16_of(first) | bf16_of(second) << 16;
}

// Threads and barriers.

namespace host {

using Kernel = void (*)(const unsigned char *, unsigned char *, unsigned long long);

constexpr unsigned MOST_THREADS = 1024;
constexpr size_t STACK = 64 << 10;

struct Thread {
    jmp_buf state;
    bool is_started, is_at_barrier;
};

static thread_local Thread threads[MOST_THREADS];
static thread_local unsigned char *stacks;
static thread_local jmp_buf scheduler;
static thread_local unsigned running;

static thread_local struct {
    Kernel kernel;
    const unsigned char *blocks;
    unsigned char *out;
    unsigned long long count;
} launched;

// Back to whoever let this thread run, and on from here when it may run again.
static void pause()
{
    if (_setjmp(threads[running].state) == 0) {
        _longjmp(scheduler, 1);
    }
}

// Runs the kernel of this launch, and then that of the next.
[[noreturn]] static void run_thread()
{
    for (;;) {
        launched.kernel(launched.blocks, launched.out, launched.count);
        threads[running].is_at_barrier = false;
        pause();
    }
}

// Lets a thread run to the next barrier or to its end.
static void resume(unsigned thread)
{
    running = thread;
    threadIdx = {thread, 0, 0};
    // The context starts a stack; from then on a jump is enough, and does without system calls.
    if (_setjmp(scheduler) != 0) {
        return;
    }
    if (threads[running].is_started) {
        _longjmp(threads[running].state, 1);
    }
    threads[running].is_started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + running * STACK;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, run_thread, 0);
    setcontext(&context);
    abort();
}

[[maybe_unused]] static void barrier()
{
    threads[running].is_at_barrier = true;
    pause();
}

// Runs the threads of a thread block, all to each barrier before any goes on. `order` is the step
// from one thread to the next. Whether all came to the same barriers.
static bool run_block(unsigned count, unsigned order)
{
    for (;;) {
        unsigned waiting = 0;
        for (unsigned i = 0; i < count; i++) {
            const unsigned thread = (i + 1) * order % count;
            resume(thread);
            waiting += threads[thread].is_at_barrier;
        }
        if (waiting == 0) {
            return true;
        }
        if (waiting != count) {
            return false;
        }
    }
}

} // namespace host

#ifdef WITHOUT_BARRIERS
static void __syncthreads() {}
#else
[[maybe_unused]] static void __syncthreads() { host::barrier(); }
#endif

// Launches a kernel on blocks of `len` bytes. `order` has to be odd, and if it is not 1, thread blocks
// come backwards. 0 if all went well.
extern "C" int launch(host::Kernel kernel, const unsigned char *blocks, size_t len,
                      unsigned char *out, unsigned long long count, unsigned grid, unsigned block,
                      unsigned order)
{
    if (host::stacks == nullptr) {
        void *const stacks = mmap(nullptr, host::MOST_THREADS * host::STACK, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stacks == MAP_FAILED) {
            return 1;
        }
        host::stacks = static_cast<unsigned char *>(stacks);
    }
    if (block > host::MOST_THREADS || order % 2 == 0) {
        return 2;
    }
    host::launched = {kernel, blocks, out, count};
    blocks_start = blocks;
    blocks_end = blocks + len;
    gridDim = {grid, 1, 1};
    for (unsigned i = 0; i < grid; i++) {
        blockIdx = {order == 1 ? i : grid - 1 - i, 0, 0};
        if (!host::run_block(block, order)) {
            return 3;
        }
    }
    return 0;
}

// Memory that ends where nobody may read: `len` bytes right in front of a page that is not there.
extern "C" unsigned char *guarded(size_t len)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t whole = (len + page - 1) / page * page;
    void *const map = mmap(nullptr, whole + page, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) {
        return nullptr;
    }
    unsigned char *const start = static_cast<unsigned char *>(map);
    if (mprotect(start + whole, page, PROT_NONE) != 0) {
        return nullptr;
    }
    return start + whole - len;
}

extern "C" void release(unsigned char *bytes, size_t len)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t whole = (len + page - 1) / page * page;
    munmap(bytes + len - whole, whole + page);
}
