/* Stands in for NVIDIA's libnvidia-ml.so.1 where there is no driver: three GPUs, of which the second knows
   neither power nor throttling and the third does not answer. Signatures as in the NVML API reference. */
#include <stddef.h>
typedef void *gpu;
typedef struct { unsigned gpu, memory; } rates;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory;
enum { OK = 0, NOT_SUPPORTED = 3, LOST = 15, VERSION_MISMATCH = 25 };
static int number(gpu g) { return (int)(size_t)g - 1; }
int nvmlInit_v2(void) { return OK; }
const char *nvmlErrorString(int code) { return code == LOST ? "GPU is lost" : "Not Supported"; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 3; return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, gpu *g) { *g = (gpu)(size_t)(i + 1); return i == 2 ? LOST : OK; }
int nvmlDeviceGetPowerUsage(gpu g, unsigned *mw) { *mw = 312450; return number(g) ? NOT_SUPPORTED : OK; }
int nvmlDeviceGetClockInfo(gpu g, int kind, unsigned *mhz) { *mhz = kind == 1 ? 1980 : 3201; return OK; }
int nvmlDeviceGetTemperature(gpu g, int sensor, unsigned *c) { *c = sensor == 0 ? 61 : 0; return OK; }
int nvmlDeviceGetCurrPcieLinkGeneration(gpu g, unsigned *gen) { *gen = 5; return OK; }
int nvmlDeviceGetCurrPcieLinkWidth(gpu g, unsigned *width) { *width = 16; return OK; }
int nvmlDeviceGetUtilizationRates(gpu g, rates *r) { r->gpu = 97; r->memory = 12; return OK; }
int nvmlDeviceGetCurrentClocksEventReasons(gpu g, unsigned long long *bits) {
  *bits = 0x4 | 0x40;
  return number(g) ? NOT_SUPPORTED : OK;
}
int nvmlDeviceGetMemoryInfo_v2(gpu g, memory *m) {
  if (m->version != 0x02000028) return VERSION_MISMATCH;
  m->used = 1234ULL << 20;
  return OK;
}
