// cudaMemcpyPeerAsync from GPU 0 to GPU 1, timed with CUDA events and nothing else of ours: the reference.
// peer_copies on|off: prints "bytes median_us smallest_us largest_us" for each size.
//
// A kernel holds the stream until the host has queued the whole batch, so that queueing is not measured.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

static void check(cudaError_t code, const char *what) {
  if (code == cudaSuccess) return;
  fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  exit(1);
}

__global__ void hold(volatile int *go) {
  long long until = clock64() + 200000000LL;  // about 0.1 s: it never waits for ever
  while (!*go && clock64() < until) {
  }
}

struct Copies {
  void *source, *target;
  volatile int *go;
  cudaStream_t stream;
  cudaEvent_t start, stop;

  float batch_us(size_t bytes, int count) {
    *go = 0;
    hold<<<1, 1, 0, stream>>>(go);
    check(cudaGetLastError(), "hold");
    check(cudaEventRecord(start, stream), "record");
    for (int i = 0; i < count; i++)
      check(cudaMemcpyPeerAsync(target, 1, source, 0, bytes, stream), "copy");
    check(cudaEventRecord(stop, stream), "record");
    *go = 1;
    check(cudaEventSynchronize(stop), "synchronize");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start, stop), "elapsed");
    return ms * 1000 / count;
  }
};

static void enable(int from, int to) {
  check(cudaSetDevice(from), "device");
  check(cudaDeviceEnablePeerAccess(to, 0), "peer access");
}

int main(int argc, char **argv) {
  size_t kib[] = {12, 48, 192, 768, 4096, 16384, 65536}, most = 65536 * 1024;
  if (argc < 2) return 2;
  if (!strcmp(argv[1], "on")) {
    enable(0, 1);
    enable(1, 0);
  }
  Copies c;
  check(cudaSetDevice(1), "device");
  check(cudaMalloc(&c.target, most), "malloc");
  check(cudaMemset(c.target, 0, most), "memset");
  check(cudaDeviceSynchronize(), "synchronize");
  check(cudaSetDevice(0), "device");
  check(cudaMalloc(&c.source, most), "malloc");
  check(cudaMemset(c.source, 0, most), "memset");
  check(cudaHostAlloc((void **)&c.go, sizeof(int), cudaHostAllocMapped), "host memory");
  check(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking), "stream");
  check(cudaEventCreate(&c.start), "event");
  check(cudaEventCreate(&c.stop), "event");
  check(cudaDeviceSynchronize(), "synchronize");
  for (size_t size : kib) {
    size_t bytes = size * 1024;
    float one = 1e9;
    for (int i = 0; i < 5; i++) one = std::min(one, c.batch_us(bytes, 1));
    int count = std::max(10, std::min(200, (int)(20000 / std::max(1.0f, one))));
    c.batch_us(bytes, count);
    std::vector<float> us;
    for (int i = 0; i < 15; i++) us.push_back(c.batch_us(bytes, count));
    std::sort(us.begin(), us.end());
    printf("%zu %.4f %.4f %.4f\n", bytes, us[7], us.front(), us.back());
    fflush(stdout);
  }
  return 0;
}
