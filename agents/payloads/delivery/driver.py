"""GPUs through the CUDA driver API (libcuda, which comes with the driver): no torch, no CUDA runtime."""

import ctypes

import kernel
from lines import Refusal

WORDS = ctypes.c_ulonglong
IPC_LAZY_PEER_ACCESS = 1  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
ALREADY_ENABLED = 704  # CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED


class Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * 64),)


class Driver:
    """Calls into the driver; a failing call raises OSError with the driver's own words."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            fix = "run this where nvidia-smi works; a container needs the driver's compute libraries"
            raise Refusal(f"the CUDA driver cannot be loaded: {error}", fix) from None
        try:
            self("cuInit", 0)
        except OSError as error:
            raise Refusal(f"CUDA does not start: {error}", "look at nvidia-smi") from None

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            raise OSError(code, f"{name}: {(text.value or b'unknown error').decode()}")

    def number(self, name, *args):
        value = ctypes.c_int()
        self(name, ctypes.byref(value), *args)
        return value.value

    def gpus(self):
        """(name, PCI address) of each, in PCI order."""
        name, address = (ctypes.create_string_buffer(100) for _ in range(2))
        for index in range(self.number("cuDeviceGetCount")):
            self("cuDeviceGetName", name, 100, index)
            self("cuDeviceGetPCIBusId", address, 100, index)
            yield name.value.decode(), address.value.decode()

    def reachable(self, a, b):
        return bool(self.number("cuDeviceCanAccessPeer", a, b))


class Gpu:
    """One GPU's own memory, in its primary context. A buffer is (address, context or None): None for mapped memory of
    another process."""

    def __init__(self, driver, index):
        self.driver, self.context, self.stream = driver, ctypes.c_void_p(), ctypes.c_void_p()
        driver("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), index)
        self("cuStreamCreate", ctypes.byref(self.stream), 0)
        self.kernel = None

    def __call__(self, name, *args):
        self.driver("cuCtxSetCurrent", self.context)
        self.driver(name, *args)

    def reach(self, peer):
        try:
            self("cuCtxEnablePeerAccess", peer.context, 0)
        except OSError as error:
            if error.errno != ALREADY_ENABLED:
                raise

    def prepare(self, method):
        """Raises OSError when this GPU cannot write by that method."""
        if method == "kernel_stores" and self.kernel is None:
            module, function = ctypes.c_void_p(), ctypes.c_void_p()
            self("cuModuleLoadData", ctypes.byref(module), kernel.PTX)
            self("cuModuleGetFunction", ctypes.byref(function), module, kernel.NAME)
            self.kernel = function

    def allocate(self, size):
        address = WORDS()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address, self.context

    def handle(self, buffer):
        handle = Handle()
        self("cuIpcGetMemHandle", ctypes.byref(handle), buffer[0])
        return bytes(handle)

    def opened(self, handle, _size):
        address, ipc_handle = WORDS(), Handle.from_buffer_copy(handle)
        self("cuIpcOpenMemHandle_v2", ctypes.byref(address), ipc_handle, IPC_LAZY_PEER_ACCESS)
        return address, None

    def fill(self, buffer, value, size):
        self("cuMemsetD8_v2", buffer[0], ctypes.c_ubyte(value), ctypes.c_size_t(size))
        self("cuCtxSynchronize")

    def upload(self, buffer, data):
        self("cuMemcpyHtoD_v2", buffer[0], data, ctypes.c_size_t(len(data)))
        self("cuCtxSynchronize")

    def read(self, buffer, size):
        content = bytearray(size)
        place = (ctypes.c_char * size).from_buffer(content)
        self("cuMemcpyDtoH_v2", place, buffer[0], ctypes.c_size_t(size))
        return content

    def write(self, method, target, source, size):
        send = self.store if method == "kernel_stores" else self.copy
        send(target, source, size)
        self("cuStreamSynchronize", self.stream)

    def fetch(self, target, source, size):
        self.copy(target, source, size)
        self("cuStreamSynchronize", self.stream)

    def copy(self, target, source, size):
        """Writes by the copy engine, as cudaMemcpyPeerAsync does."""
        (to, to_context), (what, what_context) = target, source
        count = ctypes.c_size_t(size)
        if to_context and what_context:
            self("cuMemcpyPeerAsync", to, to_context, what, what_context, count, self.stream)
        else:
            self("cuMemcpyDtoDAsync_v2", to, what, count, self.stream)

    def store(self, target, source, size):
        values = [source[0], target[0], WORDS(size // kernel.WORD)]
        places = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        grid = (kernel.BLOCKS, 1, 1, kernel.THREADS, 1, 1)
        self("cuLaunchKernel", self.kernel, *grid, 0, self.stream, places, None)
