// What CUDA C has that C++ has not, for kernels that g++ compiles and the host runs.
// No header is included: compiling one would take longer than compiling a kernel.
typedef __SIZE_TYPE__ size_t;

struct uint3 { unsigned int x, y, z; };
typedef uint3 dim3;

// Of the program that runs the threads; see threads.cpp.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
extern char emulated_dynamic_shared[];
extern "C" void __syncthreads();
extern "C" void __syncwarp(unsigned int mask = 0xffffffffu);
extern "C" void emulated_shuffle(void *value, int size, unsigned int mask, int source, int width);
extern "C" int emulated_lane();

static const int warpSize = 32;

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __constant__ static
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __shared__ static __attribute__((section(EMULATED_SECTION)))
#define alignas(n) __attribute__((aligned(n)))

template <class T> inline T __shfl_sync(unsigned int mask, T value, int lane, int width = 32) {
    emulated_shuffle(&value, sizeof(T), mask, lane % width, width);
    return value;
}
template <class T> inline T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32) {
    emulated_shuffle(&value, sizeof(T), mask, emulated_lane() % width ^ bits, width);
    return value;
}
template <class T> inline T __shfl_down_sync(
    unsigned int mask, T value, unsigned int delta, int width = 32
) {
    emulated_shuffle(&value, sizeof(T), mask, emulated_lane() % width + (int)delta, width);
    return value;
}
template <class T> inline T __shfl_up_sync(
    unsigned int mask, T value, unsigned int delta, int width = 32
) {
    emulated_shuffle(&value, sizeof(T), mask, emulated_lane() % width - (int)delta, width);
    return value;
}

template <class To, class From> inline To emulated_bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "Bits are taken from a type of the same size.");
    To bits;
    __builtin_memcpy(&bits, &value, sizeof(To));
    return bits;
}
inline float __int_as_float(int x) { return emulated_bits<float>(x); }
inline int __float_as_int(float x) { return emulated_bits<int>(x); }
inline float __uint_as_float(unsigned int x) { return emulated_bits<float>(x); }
inline unsigned int __float_as_uint(float x) { return emulated_bits<unsigned int>(x); }
inline double __longlong_as_double(long long x) { return emulated_bits<double>(x); }
inline long long __double_as_longlong(double x) { return emulated_bits<long long>(x); }
// What instructions of a card convert, which kernels give as `asm`: to the nearest, ties to even. A
// NaN becomes the one whose bits are all set but its sign.
inline unsigned short emulated_cvt_rn_bf16_f32(float x) {
    unsigned int bits = __float_as_uint(x);
    if (x != x) { return 0x7fffu; }
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
inline unsigned short emulated_cvt_rn_f16_f32(float x) {
    unsigned int bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (x != x) { return 0x7fffu; }
    if (size >= 0x47800000u) { return (unsigned short)(sign | 0x7c00u); }
    if (size >= 0x38800000u) {
        size -= 0x38000000u;
        return (unsigned short)(sign | (size + 0xfffu + (size >> 13 & 1u)) >> 13);
    }
    // Adding 0.5 rounds to multiples of 2 to the power of -24, which are the last bits then.
    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(size) + 0.5f) - 0x3f000000u));
}
inline float emulated_cvt_f32_f16(unsigned short x) {
    unsigned int sign = (x & 0x8000u) << 16, rest = x & 0x7fffu;
    if (rest > 0x7c00u) { return __uint_as_float(0x7fffffffu); }
    if (rest == 0x7c00u) { return __uint_as_float(sign | 0x7f800000u); }
    // What is below the smallest normal number is a multiple of 2 to the power of -24.
    float size = rest < 0x400u ? (float)rest * (1.0f / 16777216.0f)
                               : __uint_as_float((rest << 13) + 0x38000000u);
    return sign ? -size : size;
}
inline unsigned int __umulhi(unsigned int a, unsigned int b) {
    return (unsigned int)((unsigned long long)a * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}

#define EMULATED_UNARY(name) \
    extern "C" double name(double) noexcept; \
    extern "C" float name##f(float) noexcept; \
    inline float name(float x) { return name##f(x); }
#define EMULATED_BINARY(name) \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    inline float name(float x, float y) { return name##f(x, y); }
EMULATED_UNARY(exp) EMULATED_UNARY(exp2) EMULATED_UNARY(expm1)
EMULATED_UNARY(log) EMULATED_UNARY(log2) EMULATED_UNARY(log10) EMULATED_UNARY(log1p)
EMULATED_UNARY(sin) EMULATED_UNARY(cos) EMULATED_UNARY(tanh) EMULATED_UNARY(erf) EMULATED_UNARY(erfc)
EMULATED_UNARY(lgamma)
EMULATED_UNARY(tan) EMULATED_UNARY(asin) EMULATED_UNARY(acos) EMULATED_UNARY(atan)
EMULATED_UNARY(sinh) EMULATED_UNARY(cosh)
EMULATED_UNARY(asinh) EMULATED_UNARY(acosh) EMULATED_UNARY(atanh)
EMULATED_UNARY(sqrt) EMULATED_UNARY(fabs)
EMULATED_UNARY(floor) EMULATED_UNARY(ceil) EMULATED_UNARY(rint) EMULATED_UNARY(trunc)
EMULATED_BINARY(atan2) EMULATED_BINARY(nextafter) EMULATED_BINARY(pow) EMULATED_BINARY(fmod) EMULATED_BINARY(fmin) EMULATED_BINARY(fmax)
extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
inline bool isnan(double x) { return x != x; }
inline bool isnan(float x) { return x != x; }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isinf(float x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool isfinite(float x) { return __builtin_isfinite(x); }
inline int min(int a, int b) { return b < a ? b : a; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned int min(unsigned int a, unsigned int b) { return b < a ? b : a; }
inline unsigned int max(unsigned int a, unsigned int b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return b < a ? b : a; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
inline unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
inline float min(float a, float b) { return fminf(a, b); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

// A kernel's parameters, in letters, and how it is called with pointers to their values.
template <class T> struct Emulated { static constexpr char kind = 's'; };  // A struct.
template <> struct Emulated<bool> { static constexpr char kind = 'b'; };
template <> struct Emulated<float> { static constexpr char kind = 'f'; };
template <> struct Emulated<double> { static constexpr char kind = 'f'; };
#define EMULATED_INTEGER(T) \
    template <> struct Emulated<T> { static constexpr char kind = 'i'; }; \
    template <> struct Emulated<unsigned T> { static constexpr char kind = 'u'; };
EMULATED_INTEGER(char) EMULATED_INTEGER(short) EMULATED_INTEGER(int) EMULATED_INTEGER(long)
EMULATED_INTEGER(long long)
template <> struct Emulated<signed char> { static constexpr char kind = 'i'; };
template <class T> struct Emulated<const T> : Emulated<T> {};

struct EmulatedParameter { char kind, pointee; int size, pointee_size; };
template <class T> struct EmulatedDescribe {
    static constexpr EmulatedParameter is = {Emulated<T>::kind, 0, (int)sizeof(T), 0};
};
template <class T> struct EmulatedDescribe<T *> {
    static constexpr EmulatedParameter is = {'p', Emulated<T>::kind, 8, (int)sizeof(T)};
};
template <> struct EmulatedDescribe<void *> {
    static constexpr EmulatedParameter is = {'p', 's', 8, 0};
};
template <> struct EmulatedDescribe<const void *> : EmulatedDescribe<void *> {};

struct EmulatedKernel {
    int count;
    const EmulatedParameter *parameters;
    void (*call)(void **);
};
template <int... I> struct EmulatedIndices {};
template <int N, int... I> struct EmulatedCount : EmulatedCount<N - 1, N - 1, I...> {};
template <int... I> struct EmulatedCount<0, I...> { typedef EmulatedIndices<I...> type; };
template <class F, F *kernel> struct EmulatedEntry;
template <class... A, void (*kernel)(A...)> struct EmulatedEntry<void(A...), kernel> {
    static constexpr EmulatedParameter parameters[sizeof...(A) + 1] = {EmulatedDescribe<A>::is...};
    template <int... I> static void spread(void **args, EmulatedIndices<I...>) {
        kernel(*(A *)args[I]...);
    }
    static void call(void **args) {
        spread(args, typename EmulatedCount<sizeof...(A)>::type());
    }
};
#define EMULATED_KERNEL(name, key) \
    extern "C" const EmulatedKernel emulated_kernel_##name##_##key = { \
        sizeof(EmulatedEntry<decltype(name), name>::parameters) / sizeof(EmulatedParameter) - 1, \
        EmulatedEntry<decltype(name), name>::parameters, \
        EmulatedEntry<decltype(name), name>::call};
