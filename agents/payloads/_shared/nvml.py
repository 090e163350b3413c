"""The driver's figures of each GPU (NVML, the library under nvidia-smi), read through ctypes.

https://docs.nvidia.com/deploy/nvml-api/, read in November 2026. A figure that a card lacks is null.
"""

import contextlib
import ctypes

# The columns of a sample, in order.
COLUMNS = (
    "gpu",
    "power_w",
    "sm_clock_mhz",
    "memory_clock_mhz",
    "throttle_bits",
    "temperature_celsius",
    "pcie_gen",
    "pcie_width",
    "busy_percent",
    "memory_busy_percent",
    "memory_used_mib",
)
SM, MEMORY = 1, 2  # NVML_CLOCK_SM, NVML_CLOCK_MEM
CORE = 0  # NVML_TEMPERATURE_GPU
MEMORY_V2 = 0x02000028  # nvmlMemory_v2: its used leaves out what the driver reserves, as nvidia-smi


class Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class Memory(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class Nvml:
    """Raises OSError when the library is missing or does not start."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.library.nvmlErrorString.restype = ctypes.c_char_p
        self("nvmlInit_v2")
        count = ctypes.c_uint()
        self("nvmlDeviceGetCount_v2", ctypes.byref(count))
        self.gpus = [self.handle(index) for index in range(count.value)]

    def __call__(self, name, *args):
        code = getattr(self.library, name)(*args)
        if code:
            raise OSError(f"{name}: {self.library.nvmlErrorString(code).decode()}")

    def handle(self, index):
        """None for a GPU that does not answer, for example one that fell off the bus."""
        handle = ctypes.c_void_p()
        try:
            self("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
        except OSError:
            return None
        return handle

    def sample(self):
        """A list for each GPU that answers, as COLUMNS name its values."""
        return [self.row(i, gpu) for i, gpu in enumerate(self.gpus) if gpu is not None]

    def row(self, index, gpu):
        power = self.read("nvmlDeviceGetPowerUsage", gpu)  # mW
        rates = self.read("nvmlDeviceGetUtilizationRates", gpu, kind=Rates)
        memory = self.memory(gpu)
        return [
            index,
            None if power is None else round(power.value / 1000, 1),
            value(self.read("nvmlDeviceGetClockInfo", gpu, SM)),
            value(self.read("nvmlDeviceGetClockInfo", gpu, MEMORY)),
            value(self.throttled(gpu)),
            value(self.read("nvmlDeviceGetTemperature", gpu, CORE)),
            value(self.read("nvmlDeviceGetCurrPcieLinkGeneration", gpu)),
            value(self.read("nvmlDeviceGetCurrPcieLinkWidth", gpu)),
            rates and rates.gpu,
            rates and rates.memory,
            memory and memory.used >> 20,
        ]

    def throttled(self, gpu):
        """The reasons for throttling. Driver 535 renamed the function and kept the old name."""
        name = "nvmlDeviceGetCurrentClocksThrottleReasons"
        if not hasattr(self.library, name):
            name = "nvmlDeviceGetCurrentClocksEventReasons"
        return self.read(name, gpu, kind=ctypes.c_ulonglong)

    def memory(self, gpu):
        memory = Memory(version=MEMORY_V2)
        return self.read("nvmlDeviceGetMemoryInfo_v2", gpu, into=memory)

    def read(self, name, gpu, *args, kind=ctypes.c_uint, into=None):
        """The value that the function fills in; None where this card or driver lacks it."""
        figure = kind() if into is None else into
        with contextlib.suppress(OSError, AttributeError):  # AttributeError: no such function
            self(name, gpu, *args, ctypes.byref(figure))
            return figure
        return None


def value(figure):
    return None if figure is None else figure.value
