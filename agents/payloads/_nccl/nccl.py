"""NCCL called directly: torch's wrapper costs 4 to 6 us an operation (two H200, torch 2.11)."""

import ctypes

from runtime import library, raw

SUM = 0  # ncclSum
TYPES = {"fp32": 7, "bf16": 9}  # ncclFloat32, ncclBfloat16


def version_of(library):
    """The version as NCCL writes it: "2.28.9". Starts nothing on any GPU."""
    number = ctypes.c_int()
    library.ncclGetVersion(ctypes.byref(number))
    major = 10_000 if number.value >= 10_000 else 1000  # 2.9 changed its composition
    minor, patch = divmod(number.value % major, 100)
    return f"{number.value // major}.{minor}.{patch}"


class UniqueId(ctypes.Structure):
    _fields_ = (("internal", ctypes.c_byte * 128),)


class Nccl:
    """One rank's communicator. Sums in place on one stream of its GPU."""

    def __init__(self, torch, rank, links, dtype):
        self.library, self.type = library("libnccl"), TYPES[dtype]
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        self.stream = torch.cuda.Stream()
        name = UniqueId()
        if rank == 0:
            self("ncclGetUniqueId", ctypes.byref(name))
        name = UniqueId.from_buffer_copy(links.all(bytes(name))[0])
        self.communicator, ranks = ctypes.c_void_p(), 1 + max(links.all(rank))
        self("ncclCommInitRank", ctypes.byref(self.communicator), ranks, name, rank)

    def __call__(self, function, *args):
        code = getattr(self.library, function)(*args)
        if code:
            raise OSError(f"{function}: {self.library.ncclGetErrorString(code).decode()}")

    def version(self):
        return version_of(self.library)

    def reduce(self, buffer):
        place, count = raw(buffer.data_ptr()), ctypes.c_size_t(buffer.numel())
        stream = raw(self.stream.cuda_stream)
        self("ncclAllReduce", place, place, count, self.type, SUM, self.communicator, stream)

    def wait(self):
        self.stream.synchronize()

    def close(self):
        self.wait()
        self("ncclCommDestroy", self.communicator)


class Gloo:
    """The same on the CPU, over torch's gloo: shows that the program runs. meeting: a file for this arm alone,
    because the ranks of an earlier arm may leave their addresses in its file."""

    def __init__(self, torch, rank, ranks, meeting):
        self.distributed = torch.distributed
        store = torch.distributed.FileStore(meeting, ranks)
        self.distributed.init_process_group("gloo", store=store, rank=rank, world_size=ranks)

    def version(self):
        return ""

    def reduce(self, buffer):
        self.distributed.all_reduce(buffer)

    def wait(self):
        pass

    def close(self):
        self.distributed.destroy_process_group()
