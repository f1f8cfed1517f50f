"""The classes of kernels and operators, on names as profilers show them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from genaccel.profile.classes import CLASSES, KERNELS, OPERATORS, function_name, gradients, kernel_class, operator_class

NAMES = list(csv.DictReader(Path(__file__).with_name("kernel_names.tsv").open(), delimiter="\t"))


@pytest.mark.parametrize("row", NAMES, ids=[f"{row['class']}-{row['name'][:40]}" for row in NAMES])
def test_a_kernel_belongs_to_its_class(row):
    operators = tuple(filter(None, row["operators"].split("|")))
    assert kernel_class(row["name"], operators) == row["class"]


def test_every_class_of_the_tables_is_one_of_a_figure():
    assert {name for _, name in (*KERNELS, *OPERATORS)} <= set(CLASSES)


def test_every_class_of_kernels_has_a_real_name():
    assert {name for _, name in KERNELS} <= {row["class"] for row in NAMES}


@pytest.mark.parametrize(
    ("name", "around", "expected"),
    [
        ("aten::mkldnn_convolution", (), "convolution_forward"),
        ("aten::convolution_backward", (), "implicit_gemm"),
        ("aten::native_group_norm", (), "normalisation"),
        ("NativeGroupNormBackward0", (), "normalisation"),
        ("aten::addmm", (), "gemm"),
        ("aten::_scaled_dot_product_flash_attention_for_cpu", (), "attention"),
        ("aten::silu_backward", (), "elementwise"),
        ("aten::sum", (), "reduction"),
        ("aten::copy_", (), "copy"),
        ("aten::copy_", ("aten::native_group_norm",), "copy"),
        ("aten::empty", ("aten::conv3d", "aten::convolution"), "convolution_forward"),
        ("aten::add_", ("Optimizer.step#Adam.step",), "optimizer"),
        ("aten::_foreach_lerp_", (), "optimizer"),
        ("aten::detach", (), "other"),
    ],
)
def test_an_operator_belongs_to_its_own_class_or_that_of_what_called_it(name, around, expected):
    assert operator_class(name, around) == expected


@pytest.mark.parametrize(
    ("launched", "told"),
    [
        (["implicit_gemm"], ["weight_gradient"]),
        (["implicit_gemm", "implicit_gemm"], ["data_gradient", "weight_gradient"]),
        (["implicit_gemm", "weight_gradient"], ["data_gradient", "weight_gradient"]),
        (["data_gradient", "implicit_gemm"], ["data_gradient", "weight_gradient"]),
        (
            ["layout_transform", "implicit_gemm", "copy", "implicit_gemm", "reduction"],
            ["layout_transform", "data_gradient", "copy", "weight_gradient", "reduction"],
        ),
        (["implicit_gemm"] * 3, ["implicit_gemm"] * 3),
        (["data_gradient"], ["data_gradient"]),
        ([], []),
    ],
)
def test_the_gradient_of_the_data_comes_before_that_of_the_weights(launched, told):
    assert gradients(launched) == told


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (
            "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(long, float)",
            "RowwiseMomentsCUDAKernel",
        ),
        ("void at::native::<unnamed>::RowwiseMomentsCUDAKernel<float>(long, T1)", "RowwiseMomentsCUDAKernel"),
        ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop>(T1::Params)", "Kernel"),
        (
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::F<a::b<c>>>(int)",
            "vectorized_elementwise_kernel",
        ),
        ("sm90_xmma_fprop_implicit_gemm__5x_cudnn", "sm90_xmma_fprop_implicit_gemm__5x_cudnn"),
        ("void f<&g, (a)1>(h const*)", "f"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ],
)
def test_a_function_has_the_name_by_which_nsight_compute_filters(name, function):
    assert function_name(name) == function
