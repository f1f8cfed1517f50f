import numpy as np
import pytest

from genaccel.figures.loss_curve import loss_curve, main, read_losses
from genaccel.figures.spec import FigureJob
from genaccel.spec import SpecError


@pytest.fixture
def write(tmp_path):
    def write(text):
        (tmp_path / "loss.csv").write_text(text)
        return tmp_path / "loss.csv"

    return write


def table(losses):
    rows = [f"{step},{loss},3.5\n" for step, loss in enumerate(losses, start=1)]
    return "step,loss,volumes_per_s\n" + "".join(rows)


def draw(path, make_spec, **settings):
    return loss_curve(read_losses(path), FigureJob.parse(make_spec(**settings)))


def test_it_draws_every_step_and_the_mean_of_the_last(write, make_spec):
    losses = np.exp(-np.arange(50) / 20)
    raw, mean = draw(write(table(losses)), make_spec, smoothing=10).axes[0].lines
    np.testing.assert_allclose(raw.get_ydata(), losses)
    assert raw.get_xdata()[0] == 1
    assert mean.get_ydata()[-1] == pytest.approx(losses[-10:].mean())
    assert mean.get_ydata()[2] == pytest.approx(losses[:3].mean())


def test_the_loss_axis_is_logarithmic(write, make_spec):
    assert draw(write(table([1.0, 0.1, 0.01])), make_spec).axes[0].get_yscale() == "log"


@pytest.mark.parametrize("losses", [[0.5], [0.5, 0.49], list(np.linspace(1, 0.3, 7))])
def test_short_runs_have_numbers_on_both_axes(write, make_spec, losses):
    figure = draw(write(table(losses)), make_spec)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        labels = [t.label1.get_text() for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        assert any(labels)


@pytest.mark.parametrize(("steps", "called"), [(8, "mean of all steps so far"), (50, "mean of the last 20 steps")])
def test_the_legend_says_over_how_many_steps_the_mean_is(write, make_spec, texts, steps, called):
    assert called in texts(draw(write(table([0.5] * steps)), make_spec, smoothing=20))


def test_no_step_is_said(write, make_spec, texts):
    assert "no training step: the weights were used as they are" in texts(draw(write(table([])), make_spec))


def test_the_command_writes_the_figure_with_its_title(write, make_spec, tmp_path):
    out = tmp_path / "loss.svg"
    spec = make_spec("my model", format="svg")
    main(["--spec", spec, "--code", "figures@0", "--loss", str(write(table([1.0, 0.5]))), "--out", str(out)])
    assert out.read_text().count("<svg") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"loss\.csv is no CSV"),
        ("step,value\n1,2\n", "lacks the column loss; it has step, value"),
        ("step,loss\n1,0.5\n2,nan\n3,0\n", "2 of 3 losses are not positive numbers"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_an_error(write, text, message):
    with pytest.raises(SpecError, match=message):
        read_losses(write(text))


def test_an_error_is_one_line_and_exit_status_one(make_spec, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--spec", make_spec(), "--loss", str(tmp_path / "none.csv"), "--out", str(tmp_path / "x.png")])
    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith("figures.loss_curve: ")
