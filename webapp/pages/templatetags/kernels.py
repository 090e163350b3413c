"""Words for what a step is made of."""

from django import template

register = template.Library()

WORK = {
    "synchronise": "a wait for nothing",
    "kernel": "a kernel that does nothing",
    "operation": "one small torch operation",
    "graph": "a CUDA graph",
    "gemm": "product with a layer’s weights",
    "grouped_gemm": "products with experts’ weights",
}


@register.filter
def work_words(what: str) -> str:
    return WORK.get(what, what.replace("_", " "))
