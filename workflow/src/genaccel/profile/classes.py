"""What a kernel or an operator is for, by its name: ordered tables, of which the first match counts.

cuDNN's kernels say the direction of a convolution (``fprop``, ``dgrad``, ``wgrad``) or do not (a generic implicit
GEMM serves all three); there the operator that launched them tells, as far as it can. What no rule knows is ``other``,
whose share is reported beside the rest.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

CLASSES = (
    *("convolution_forward", "data_gradient", "weight_gradient", "implicit_gemm", "gemm", "attention", "normalisation"),
    *("layout_transform", "elementwise", "reduction", "copy", "optimizer", "other", "idle"),
)
"""In the order of a figure. ``implicit_gemm``: convolutions whose direction nothing tells; ``idle``: no kernel runs."""

KERNELS: tuple[tuple[str, str], ...] = (
    # This project's fused kernels. Names of Triton kernels have no namespace.
    (r"^group_norm_", "normalisation"),
    (r"^adam_ema", "optimizer"),
    (r"^patches_gather", "layout_transform"),
    (r"^head_backward_apply", "data_gradient"),
    (r"^head_backward_sums", "weight_gradient"),
    (r"^head_", "convolution_forward"),
    (r"^(residual|upsample)_", "elementwise"),
    # What torch.compile generates is named after the operators that it fuses. A layer's bias or gradient fused into
    # it says `convolution` too, so pointwise and reducing kernels come by their kind, norms first.
    (r"^triton_(tem|for)_fused_\w*convolution_backward", "implicit_gemm"),
    (r"^triton_tem_fused_\w*convolution", "convolution_forward"),
    (r"^triton_tem_fused_\w*(attention|flex)", "attention"),
    (r"^triton_tem_fused_", "gemm"),
    (r"^triton_\w+_fused_\w*(group_norm|layer_norm|batch_norm|var_mean)", "normalisation"),
    (r"^triton_\w+_fused_\w*(foreach|adam|lerp)", "optimizer"),
    (r"^triton_\w+_fused_\w*softmax", "attention"),
    (r"^triton_poi_fused_(_?(to_copy|clone|copy_?|cat|constant_pad_nd|view|permute|transpose|slice)_)+\d+$", "copy"),
    (r"^triton_(red|per|mix)_fused_", "reduction"),
    (r"^triton_(poi|for)_fused_", "elementwise"),
    (r"^Mem(cpy|set)|^\[CUDA mem(cpy|set)", "copy"),
    # Layout and type conversions of cuDNN.
    (r"(nchw|nhwc|ncdhw|ndhwc)to(nchw|nhwc|ncdhw|ndhwc)|nhwcAddPadding", "layout_transform"),
    (
        r"cubetranspose|tensortransform|transpose_readwrite|convertTensor|batch_transpose|region_transform",
        "layout_transform",
    ),
    (
        r"kern_(fold|unfold|precompute)|computeoffsets|compute_?indices|computeWgrad\w*Offsets|foldedNhwc",
        "layout_transform",
    ),
    # Attention before convolutions and GEMM: its forward pass is an `fprop` too, and CUTLASS builds all three.
    (r"fmha|flash|_attention|sdpa|mem_?eff", "attention"),
    # Around cuDNN's attention: the sums that its backward starts from, and the gradients' way to half precision.
    (r"cudnn::fusion::(compute_dot_do_o|convert_dq)", "attention"),
    # Convolutions that name their direction.
    (r"wgrad|weight_grad|backward_weight|backward_filter|convolve_wgrad|bwd_?filter", "weight_gradient"),
    (r"dgrad|backward_data|backward_input|bwd_?data", "data_gradient"),
    (r"fprop|conv_?fwd|conv_?(2d|3d|nd)_forward|conv_depthwise[23]d_(cuda|forward)_kernel", "convolution_forward"),
    (
        r"implicit_convolve|explicit_convolve|precomputed_convolve|implicit_gemm|convolve_common_engine|convolveNd",
        "implicit_gemm",
    ),
    (r"conv[123]d_\w*kernel|_scudnn_|winograd|fft[123]d_|cudnn_generated\w*conv|conv\w*direct_kernel", "implicit_gemm"),
    (r"im2col|vol2col|col2im|col2vol", "layout_transform"),
    (r"softmax", "attention"),
    (r"multi_tensor_apply|FusedAdam|FusedOptimizer|fused_adam|lpnorm.*multi", "optimizer"),
    (
        r"group_?norm|layer_?norm|batch_?norm|instance_?norm|RowwiseMoments|cudnn::bn_|bn_(fw|bw)_|welford",
        "normalisation",
    ),
    (r"ComputeInternalGradients|Compute(Backward)?FusedParams|GammaBetaBackward", "normalisation"),
    (r"gemm|gemv|cutlass|splitK|cublas|xmma|nvjet|dot_kernel|sgemm|hgmma", "gemm"),
    # PyTorch's own.
    (
        r"CatArrayBatchedCopy|direct_copy_kernel|copy_kernel|copy_device|bfloat16_copy|float16_copy|LoadWithCast.*copy",
        "copy",
    ),
    (r"reduce_kernel|reduce_\w*kernel|Reduce|segmented", "reduction"),
    (r"scalePackedTensor|op_tensor|opTensor|addTensor|add_tensor|setTensor", "elementwise"),
    (
        r"elementwise|upsample|index_|gather|scatter|fill|dropout|distribution|Pointwise|arange|pad\d?d|pool|triu|tril",
        "elementwise",
    ),
)
"""Regular expressions on the names of kernels, without regard to case, after a leading ``void``."""

OPERATORS: tuple[tuple[str, str], ...] = (
    (r"convolution_?backward|conv\w*_backward", "implicit_gemm"),
    (r"convolution|conv[123]d|slow_conv|thnn_conv", "convolution_forward"),
    (r"attention|softmax", "attention"),
    (r"group_?norm|layer_?norm|batch_?norm", "normalisation"),
    (r"foreach|fused_adam|lerp|Optimizer\.", "optimizer"),
    (r"::(addmm|mm|bmm|baddbmm|addbmm|linear|matmul|addmv|mv|dot)\b", "gemm"),
    (r"::(copy_|_to_copy|cat|clone|contiguous|_reshape_alias_copy|stack|constant_pad_nd)\b|mkldnn_reorder", "copy"),
    (r"::(sum|mean|amax|amin|max|min|norm|linalg_vector_norm|l1_loss|mse_loss|all|any|var|std)\b", "reduction"),
    (
        r"::(add|sub|rsub|mul|div|neg|abs|exp|log|sqrt|rsqrt|cos|sin|pow|silu|sigmoid|tanh|relu|gelu|clamp|where|sign|sgn"
        r"|addcmul|addcdiv|reciprocal|eq|ne|gt|ge|lt|le|bitwise\w*|logical\w*|fill|zero|index|index_select|gather|scatter"
        r"|upsample\w*|arange|masked_fill|dropout|native_dropout|bernoulli|normal|uniform)(_backward)?_?\b",
        "elementwise",
    ),
)
"""Regular expressions on the names of operators, for devices whose profiler sees no kernels."""

GENERIC = ("implicit_gemm", "convolution_forward")
"""Of kernels that a backward pass may launch: their name does not say that they compute a gradient."""

LAUNCHERS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (("elementwise", "reduction", "copy", "other"), r"Optimizer\.step|_fused_adam|_foreach_", "optimizer"),
    (("elementwise", "reduction", "copy", "other"), r"native_group_norm|native_layer_norm", "normalisation"),
    (("implicit_gemm",), r"convolution_backward_input|conv\w*_backward_input", "data_gradient"),
    (("implicit_gemm",), r"convolution_backward_weight|conv\w*_backward_weight", "weight_gradient"),
    (("implicit_gemm", "other"), r"::(cudnn_)?convolution$|::_convolution$|::conv[123]d$", "convolution_forward"),
    (("other",), r"convolution_backward", "implicit_gemm"),
)
"""Classes by name that the launching operators make precise: those classes, an operator among them, the class."""

BACKWARD = re.compile(r"convolution_backward$")


@functools.cache
def kernel_class(name: str, operators: tuple[str, ...] = ()) -> str:
    """The class of a kernel.

    Args:
        name: as a profiler shows it, with or without its template arguments.
        operators: host operators within which it was launched, from outside in; none where the trace has none, as
            within CUDA graphs.
    """
    found = _first(KERNELS, re.sub(r"^void\s+", "", name))
    if found in GENERIC and any(BACKWARD.search(operator) for operator in operators):
        found = "implicit_gemm"
    for classes, launcher, precise in LAUNCHERS:
        if found in classes and any(re.search(launcher, operator) for operator in operators):
            return precise
    return found


@functools.cache
def operator_class(name: str, operators: tuple[str, ...] = ()) -> str:
    """The class of an operator by its own name, or of the nearest one around it that a rule knows.

    Args:
        name: e.g. ``aten::convolution``.
        operators: around it, from outside in.
    """
    if any(operator.startswith("Optimizer.step") for operator in operators):
        return "optimizer"
    names = (name, *reversed(operators))
    return next((found for each in names if (found := _first(OPERATORS, each)) != "other"), "other")


def gradients(classes: Sequence[str]) -> list[str]:
    """Tells the two gradients of one convolution apart where its kernels' names do not.

    PyTorch computes the gradient of the data before that of the weights, and the first layer's data need none. A
    backward pass of more or other kernels than that stays as it is.

    Args:
        classes: of the kernels that one ``aten::convolution_backward`` launched, in order.
    """
    main = [
        place for place, name in enumerate(classes) if name in ("implicit_gemm", "data_gradient", "weight_gradient")
    ]
    precise = list(classes)
    if len(main) == 1 and classes[main[0]] == "implicit_gemm":
        precise[main[0]] = "weight_gradient"
    elif len(main) == 2:
        first, second = (classes[place] for place in main)
        if first == "implicit_gemm" and second != "data_gradient":
            precise[main[0]] = "data_gradient"
        if second == "implicit_gemm" and first != "weight_gradient":
            precise[main[1]] = "weight_gradient"
    return precise


def function_name(name: str) -> str:
    """The name of a kernel's function, as Nsight Compute filters by it: no namespace, template or parameters.

    ``void at::native::(anonymous namespace)::f<4, g<float>>(int)`` -> ``f``.
    """
    plain = re.sub(
        r"\((anonymous namespace|bool|int|unsigned int|unsigned long|long|short|char|signed char)\)", "", name
    )
    plain = re.sub(r"<unnamed>|\{lambda.*?\}", "", re.sub(r"^void\s+", "", plain))
    kept, depth = [], 0
    for sign in plain.replace("->", ""):
        if sign == "(" and depth == 0:
            break
        depth += (sign == "<") - (sign == ">")
        if depth == 0 and sign != ">":
            kept.append(sign)
    return "".join(kept).strip().split("::")[-1].split(" ")[-1]


def _first(table: Sequence[tuple[str, str]], name: str) -> str:
    return next((found for pattern, found in _compiled(table) if pattern.search(name)), "other")


@functools.cache
def _compiled(table: tuple[tuple[str, str], ...]) -> list[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), found) for pattern, found in table]
