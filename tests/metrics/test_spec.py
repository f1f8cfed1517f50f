import pytest

from genaccel.metrics.features import FEATURES, needs_weights
from genaccel.metrics.spec import FeatureSpec, MetricsSpec
from genaccel.spec import SpecError

FILE = {"weights": "resnet.pth", "weights_sha256": "0" * 64}


def test_the_registry_has_deepbet_and_three_of_medicalnets():
    assert FEATURES.names() == ["deepbet", "medicalnet_10", "medicalnet_18", "medicalnet_50"]
    assert [name for name in FEATURES.names() if not needs_weights(name)] == ["deepbet"]


@pytest.mark.parametrize("name", FEATURES.names())
def test_a_network_is_set_by_its_name_with_its_file_where_it_needs_one(name):
    settings = {"network": name} | (FILE if needs_weights(name) else {})
    assert MetricsSpec.build({"features": settings}).features.network == name


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"network": "medicalnet_10"}, "metrics.features: medicalnet_10 does not come with a package; set `weights`"),
        (FILE, "metrics.features: deepbet comes with its package and reads no file; leave `weights`"),
        ({"network": "medicalnet_11"}, "unknown feature network 'medicalnet_11'; did you mean `medicalnet_1"),
        ({"network": "medicalnet_10"} | FILE | {"weights_sha256": "xyz"}, "metrics.features.weights_sha256: "),
    ],
)
def test_settings_that_do_not_go_together_are_caught_while_parsing(settings, said):
    with pytest.raises(SpecError) as error:
        MetricsSpec.build({"features": settings}, where="metrics")
    assert said in str(error.value)


def test_a_spec_says_all_that_it_holds():
    assert set(FeatureSpec().model_dump()) == {"network", "weights", "weights_sha256"}
