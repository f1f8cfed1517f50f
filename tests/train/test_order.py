"""The order of training volumes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genaccel.train.order import Order


@given(n=st.integers(1, 30), seed=st.integers(0, 100), epoch=st.integers(0, 5))
def test_every_epoch_visits_every_volume_once(n, seed, epoch):
    order = Order(n, seed)
    assert sorted(order.volume(epoch * n + i) for i in range(n)) == list(range(n))


def test_epochs_differ_and_a_position_is_always_the_same():
    order = Order(20, 0)
    epochs = [[order.volume(e * 20 + i) for i in range(20)] for e in (0, 1, 5, 0)]
    assert epochs[0] == epochs[3]
    assert epochs[0] != epochs[1] != epochs[2]


@given(batch=st.integers(1, 4), world=st.integers(1, 4), micro=st.integers(0, 10))
def test_devices_share_out_the_batch_that_one_device_would_see(batch, world, micro):
    order = Order(5, 0)
    alone = list(order.positions(micro, batch * world, 0, 1))
    assert [p for rank in range(world) for p in order.positions(micro, batch, rank, world)] == alone


def test_an_empty_split_is_an_error():
    with pytest.raises(ValueError, match="training split is empty"):
        Order(0, 0)
