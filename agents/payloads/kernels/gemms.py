"""Matrix products at the sizes of a decode step: few tokens, and a read of all weights.

The products rotate over so many weights that the L2 cannot hold them, as in a model; where memory does not allow
that, the row says so. Experts are one batched product, as in a fused kernel.
"""

import functools
import itertools
import math

from lines import lost, say
from stopwatch import tell

BEYOND_L2 = 4
LEAST_IN_GRAPH = 50
FREE_SHARE = 4  # weights take at most a quarter of the free memory
CPU_BYTES = 64 * 2**20


class Gemms:
    """Products of `tokens` activations with weights of hidden x intermediate."""

    def __init__(self, torch, watch, chosen):
        self.torch, self.watch, self.chosen = torch, watch, chosen
        self.type = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[chosen.dtype]
        self.on_gpu = watch.gpu is not None
        self.device = f"cuda:{watch.gpu}" if self.on_gpu else "cpu"
        width = 4 if chosen.dtype == "fp32" else 2
        self.one_bytes = chosen.hidden * chosen.intermediate * width
        self.wanted_bytes = BEYOND_L2 * watch.l2_bytes() if self.on_gpu else 0
        free = torch.cuda.mem_get_info(watch.gpu)[0] // FREE_SHARE if self.on_gpu else CPU_BYTES
        self.most = max(1, free // self.one_bytes)

    def new(self, *shape):
        return self.torch.empty(shape, dtype=self.type, device=self.device).normal_()

    def row(self, what, tokens, read_bytes, held_bytes):
        c = self.chosen
        shape = {"hidden": c.hidden, "intermediate": c.intermediate, "dtype": c.dtype}
        beyond = self.on_gpu and held_bytes >= self.wanted_bytes
        gpu = str(self.watch.gpu) if self.on_gpu else "cpu"
        about = {"what": what, "gpu": gpu, "batch": tokens, **shape}
        return {**about, "weight_bytes": read_bytes, "beyond_l2": beyond}

    def both(self, row, actions):
        moved = row["weight_bytes"]
        try:
            if self.on_gpu:
                times = -(-LEAST_IN_GRAPH // len(actions))
                tell(row, "device", "graph", self.watch.in_graph(actions * times), moved)
            turn = itertools.cycle(actions)
            tell(row, "host_sync", "call", self.watch.calls(lambda: next(turn)()), moved)
        except RuntimeError as error:
            lost("{what}, {batch} tokens".format(**row), error)

    def dense(self):
        count = max(1, min(self.most, math.ceil(self.wanted_bytes / self.one_bytes)))
        weights = self.new(count, self.chosen.intermediate, self.chosen.hidden)
        for tokens in self.chosen.batch:
            tokens_in = self.new(tokens, self.chosen.hidden)
            result = self.new(tokens, self.chosen.intermediate)
            product = functools.partial(self.torch.mm, tokens_in, out=result)
            row = self.row("gemm", tokens, self.one_bytes, count * self.one_bytes)
            self.both(row, [functools.partial(product, weight.t()) for weight in weights])

    def grouped(self):
        c = self.chosen
        experts = min(c.experts, self.most)
        if experts < c.experts:
            say(note=f"{experts} experts instead of {c.experts}: a quarter of the free memory")
        weights = self.new(experts, c.hidden, c.intermediate)
        active = min(c.active, experts)
        for tokens in c.batch:
            touched = max(active, round(experts * (1 - (1 - active / experts) ** tokens)))
            each = math.ceil(tokens * active / touched)
            tokens_in, result = (self.new(touched, each, size) for size in (c.hidden, c.intermediate))
            product = functools.partial(self.torch.bmm, tokens_in, out=result)
            places = range(0, experts - touched + 1, touched)
            actions = [functools.partial(product, weights[at : at + touched]) for at in places]
            read = touched * self.one_bytes
            row = self.row("grouped_gemm", tokens, read, len(actions) * read)
            self.both({**row, "experts": touched, "tokens_each": each}, actions)
