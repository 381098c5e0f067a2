// Runs the blocks and threads of kernels, one after another or as fibers that wait at barriers.
// One library for all kernels, so that they share its stacks.
#include <csetjmp>
#include <cstdint>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

struct uint3 { unsigned int x, y, z; };
uint3 threadIdx, blockIdx, blockDim, gridDim;
alignas(16) char emulated_dynamic_shared[48 << 10];

namespace {

constexpr int kLargestBlock = 1024, kWarp = 32;
constexpr size_t kStack = 64 << 10;
enum State { kReady, kAtBlockBarrier, kAtWarpBarrier, kDone };
enum Fault { kNone, kDiverged, kTooWide, kPartialMask, kNoFibers, kMisaligned };

struct Fiber {
    jmp_buf at;
    State state;
    bool made;
    unsigned char parity;  // Of the shuffle; two slots, so that one barrier a shuffle is enough.
    uint64_t slot[2];
    uint3 index;
};

Fiber fibers[kLargestBlock];
char *stacks;
jmp_buf scheduler;
int current = -1, threads;
Fault fault;
void (*body)(void **);
void **arguments;

// longjmp between stacks is what this is made of, so the checked variant must not be used.
[[noreturn]] void resume(jmp_buf &at) { _longjmp(at, 1); }

void yield() {
    if (!_setjmp(fibers[current].at)) { resume(scheduler); }
}

void live() {
    for (;;) {
        body(arguments);
        fibers[current].state = kDone;
        yield();
    }
}

ucontext_t starter, first;

void run(int number) {
    current = number;
    Fiber &fiber = fibers[number];
    threadIdx = fiber.index;
    if (_setjmp(scheduler)) { current = -1; return; }
    if (fiber.made) { resume(fiber.at); }
    fiber.made = true;
    getcontext(&first);
    first.uc_stack.ss_sp = stacks + number * kStack;
    first.uc_stack.ss_size = kStack;
    first.uc_link = &starter;
    makecontext(&first, live, 0);
    setcontext(&first);
}

void wait(State state) {
    Fiber &fiber = fibers[current];
    fiber.state = state;
    yield();
    threadIdx = fiber.index;
}

// Whether all threads from `begin` on are in a state.
bool all(int begin, int end, State state) {
    for (int i = begin; i < end; ++i) {
        if (fibers[i].state != state) { return false; }
    }
    return true;
}

void release(int begin, int end) {
    for (int i = begin; i < end; ++i) { fibers[i].state = kReady; }
}

uint64_t random_state;
uint64_t random_number() {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return random_state >> 33;
}

// The threads of a block, each up to its next barrier, in an order that differs from turn to turn.
void run_block() {
    release(0, threads);
    for (int i = 0; i < threads; ++i) { fibers[i].parity = 0; }
    while (!all(0, threads, kDone)) {
        int start = (int)(random_number() % threads);
        bool back = random_number() & 1;
        bool ran = false;
        for (int i = 0; i < threads; ++i) {
            int number = (start + (back ? threads - i : i)) % threads;
            if (fibers[number].state == kReady) { run(number); ran = true; }
        }
        for (int warp = 0; warp + kWarp <= threads; warp += kWarp) {
            if (all(warp, warp + kWarp, kAtWarpBarrier)) { release(warp, warp + kWarp); ran = true; }
        }
        if (all(0, threads, kAtBlockBarrier)) { release(0, threads); ran = true; }
        if (!ran && !fault) { fault = kDiverged; }
        if (fault) { return; }
    }
}

void index_threads() {
    int number = 0;
    for (unsigned z = 0; z < blockDim.z; ++z) {
        for (unsigned y = 0; y < blockDim.y; ++y) {
            for (unsigned x = 0; x < blockDim.x; ++x) { fibers[number++].index = {x, y, z}; }
        }
    }
}

void run_loop() {
    bool back = random_number() & 1;
    for (int i = 0; i < threads; ++i) {
        threadIdx = fibers[back ? threads - 1 - i : i].index;
        body(arguments);
    }
}

// The processor's mode in which numbers below the normal ones are 0, for as long as a kernel runs.
struct Flushing {
#ifdef __SSE__
    unsigned int before = _mm_getcsr();
    explicit Flushing(bool on) { if (on) { _mm_setcsr(before | 0x8040u); } }
    ~Flushing() { _mm_setcsr(before); }
#else
    explicit Flushing(bool) {}
#endif
};

uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

}  // namespace

extern "C" void __syncthreads() {
    if (current < 0) { fault = kNoFibers; return; }
    wait(kAtBlockBarrier);
}

extern "C" void __syncwarp(unsigned int mask) {
    if (mask != 0xffffffffu) { fault = kPartialMask; }
    if (current < 0) { fault = kNoFibers; return; }
    wait(kAtWarpBarrier);
}

// What g++ calls where something is not aligned, with `-fsanitize=alignment`.
extern "C" void __ubsan_handle_type_mismatch_v1(void *, void *) { fault = kMisaligned; }

extern "C" int emulated_lane() { return current < 0 ? 0 : current % kWarp; }

extern "C" void emulated_shuffle(void *value, int size, unsigned int mask, int source, int width) {
    if (current < 0) { fault = kNoFibers; return; }
    if (size > 8) { fault = kTooWide; return; }
    Fiber &fiber = fibers[current];
    int lane = current % kWarp, warp = current - lane, slot = fiber.parity ^= 1;
    memcpy(&fiber.slot[slot], value, size);
    __syncwarp(mask);
    if (source < 0 || source >= width) { return; }  // As CUDA says: the thread's own value.
    memcpy(value, &fibers[warp + lane / width * width + source].slot[slot], size);
}

// Runs a kernel, blocks and threads in an order that hangs on the seed; returns a Fault.
// `shared` to `shared_end` is the static shared memory of its module.
extern "C" int emulated_run(
    void (*call)(void **), void **args, const unsigned int *grid, const unsigned int *block,
    int as_fibers, size_t dynamic, char *shared, char *shared_end, unsigned int seed, int flushes
) {
    Flushing flushing(flushes);
    if (as_fibers && !stacks) {
        void *memory = mmap(0, kLargestBlock * kStack, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) { return -1; }
        stacks = (char *)memory;
    }
    body = call;
    arguments = args;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    threads = (int)(block[0] * block[1] * block[2]);
    random_state = seed;
    fault = kNone;
    index_threads();
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    uint64_t number = random_number() % blocks, step = random_number() % blocks | 1;
    while (common_divisor(step, blocks) != 1) { ++step; }
    for (uint64_t i = 0; i < blocks && !fault; ++i, number = (number + step) % blocks) {
        blockIdx = {(unsigned)(number % grid[0]), (unsigned)(number / grid[0] % grid[1]),
                    (unsigned)(number / grid[0] / grid[1])};
        // Shared memory starts as anything.
        if (shared != shared_end) { memset(shared, 0xff, (size_t)(shared_end - shared)); }
        if (dynamic) { memset(emulated_dynamic_shared, 0xff, dynamic); }
        if (as_fibers) { run_block(); } else { run_loop(); }
    }
    if (fault) {  // Some may be in the middle of the kernel, which they never leave.
        for (Fiber &fiber : fibers) { fiber.made = false; }
    }
    return fault;
}
