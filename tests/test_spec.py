"""The base of every stage's settings."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.spec import Spec, SpecError, nearest, setting


class Inner(Spec):
    rate: float = setting(0.5, "a rate", example=0.25, gt=0)
    sides: tuple[int, int] = setting((2, 2), "sides", example=(4, 4))


class Outer(Spec):
    steps: int = setting(3, "steps", example=4, ge=0)
    name: str | None = setting(None, "name", example="x")
    inner: Inner = setting(Inner(), "nested", example=None)
    many: dict[str, Inner] = setting({}, "several", example=None)


def test_key_order_and_absent_defaults_do_not_change_the_canonical_text():
    assert Outer.build({"inner": {"rate": 0.5}, "steps": 3}).canonical() == Outer().canonical()


@given(st.integers(0, 2**40))
def test_a_whole_float_is_the_integer_it_equals(steps):
    assert Outer.build({"steps": float(steps)}).canonical() == Outer.build({"steps": steps}).canonical()


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_parsing_the_canonical_text_gives_the_spec_back(rate):
    spec = Outer.build({"inner": {"rate": rate}, "many": {"a": {"rate": rate}}})
    assert Outer.parse(spec.canonical()) == spec


def test_an_integer_given_for_a_float_is_that_float():
    assert json.loads(Inner.build({"rate": 1}).canonical())["rate"] == 1.0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"stpes": 1}, "x.stpes: unknown key; did you mean `steps`?"),
        ({"inner": {"raet": 1}}, "x.inner.raet: unknown key; did you mean `rate`?"),
        ({"many": {"a": {"raet": 1}}}, "x.many.a.raet: unknown key; did you mean `rate`?"),
        ({"inner": {"rate": "1e-4"}}, "x.inner.rate: '1e-4' is text, not a number; YAML reads 1e-4 as text"),
        ({"steps": "3"}, "x.steps: '3' is text, not a number"),
        ({"steps": -1}, "x.steps: input should be greater than or equal to 0, not -1"),
        ({"steps": 1.5}, "x.steps: input should be a valid integer"),
        ({"steps": True}, "x.steps: input should be a valid integer"),
        ({"name": 7}, "x.name: input should be a valid string"),
        ({"inner": {"sides": [1]}}, "x.inner.sides"),
        ({"inner": None}, "x.inner: "),
        ({"inner": {"rate": float("nan")}}, "x.inner.rate"),
        ({"steps": None}, "x.steps: "),
        ("text", "x: "),
    ],
)
def test_a_fault_names_its_key_and_the_remedy(data, message):
    with pytest.raises(SpecError) as error:
        Outer.build(data, where="x")
    assert message in str(error.value)


def test_every_fault_is_named_at_once():
    with pytest.raises(SpecError) as error:
        Outer.build({"steps": -1, "inner": {"rate": 0}, "other": 1})
    assert len(str(error.value).splitlines()) == 3


def test_a_value_that_is_no_plain_yaml_is_refused():
    with pytest.raises(SpecError, match="plain YAML"):
        Outer.build({"name": object()})


def test_text_that_is_no_json_is_refused():
    with pytest.raises(SpecError, match="not JSON"):
        Outer.parse("{steps: 3}")


def test_a_spec_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Outer().steps = 4


def test_far_names_are_answered_with_all_valid_ones():
    assert nearest("zzz", ["b", "a"]) == "valid: `a`, `b`"
