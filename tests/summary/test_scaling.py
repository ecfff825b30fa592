"""The universal scalability law: known coefficients are found; what measurements do not show is refused."""

from __future__ import annotations

import numpy as np
import pytest
from support.summaries import plain, summarise
from support.table_load_folders import grid

from loadstone.summary.scaling.law import FEWEST_SIZES, Law, Range, fit_usl, law, peak

CLIENTS = [1, 2, 4, 8, 16, 32, 64]
RAYTRACER = {1: 20, 4: 78, 8: 130, 12: 170, 16: 190, 20: 200, 24: 210, 28: 230, 32: 260, 48: 280, 64: 310}
"""Rays per second over processors: a well-known example of contention without coherency cost."""


def exact(lambda_: float, sigma: float, kappa: float) -> list[float]:
    return [float(x) for x in law(np.array(CLIENTS, dtype=float), lambda_, sigma, kappa)]


def known(law_: Law | None) -> Law:
    assert law_ is not None
    return law_


def holds(interval: Range | None, value: float) -> bool:
    return (
        interval is not None and interval.low <= value and (interval.high is None or value <= interval.high)
    )


@pytest.mark.parametrize(
    ("lambda_", "sigma", "kappa"),
    [(900, 0.04, 0.003), (20, 0.3, 0.01), (5e4, 0.0, 0.002), (1e3, 0.1, 0.0005)],
)
def test_exact_measurements_give_their_coefficients(lambda_: float, sigma: float, kappa: float) -> None:
    found = fit_usl(CLIENTS, exact(lambda_, sigma, kappa))
    fitted = known(found.law)
    assert fitted.lambda_.value == pytest.approx(lambda_, rel=1e-4)
    assert fitted.sigma.value == pytest.approx(sigma, abs=1e-5)
    assert fitted.kappa.value == pytest.approx(kappa, rel=1e-3)
    assert fitted.r2 == pytest.approx(1)
    assert fitted.peak_n is not None
    assert fitted.peak_n.value == pytest.approx(peak(sigma, kappa), rel=1e-3)
    assert fitted.peak_tps is not None
    assert fitted.peak_tps.value == pytest.approx(
        max(law(np.linspace(1, 64, 9999), lambda_, sigma, kappa)), rel=1e-3
    )
    assert "The peak is at" in found.sentence


@pytest.mark.slow  # many fits
def test_intervals_hold_what_is_known_as_often_as_they_say() -> None:
    rng = np.random.default_rng(11)
    true = {"lambda_": 900.0, "sigma": 0.05, "kappa": 0.002, "peak_n": peak(0.05, 0.002)}
    counts = dict.fromkeys(true, 0)
    times = 100
    for _ in range(times):
        noisy = np.array(exact(900, 0.05, 0.002)) * np.exp(rng.normal(0, 0.03, len(CLIENTS)))
        found = known(fit_usl(CLIENTS, noisy.tolist()).law)
        for name, value in true.items():
            counts[name] += holds(getattr(found, name), value)
    assert all(count >= 0.88 * times for count in counts.values()), counts
    assert not all(count == times for count in counts.values()), "intervals over everything hold everything"


def test_raytracer_has_contention_and_no_peak_in_sight() -> None:
    found = fit_usl(list(RAYTRACER), [float(rate) for rate in RAYTRACER.values()])
    fitted = known(found.law)
    assert holds(fitted.sigma, 0.05)
    assert fitted.kappa.value < 1e-4
    assert fitted.kappa.low == 0
    assert fitted.peak_n is None
    assert found.reason is not None
    assert "till rising at 64" in found.reason


def test_flat_throughput_has_no_peak() -> None:
    found = fit_usl(CLIENTS, [1000, 1010, 990, 1005, 998, 1001, 1003])
    fitted = known(found.law)
    assert fitted.sigma.value > 0.95
    assert fitted.peak_n is None
    assert found.reason is not None
    assert "peak" in found.reason or "bring nothing" in found.reason


def test_linear_growth_is_still_rising() -> None:
    found = fit_usl(CLIENTS, [100.0 * n for n in CLIENTS])
    assert known(found.law).peak_n is None
    assert "Still rising at 64" in found.sentence


def test_too_few_different_sizes_are_refused_with_the_number_needed() -> None:
    found = fit_usl([1, 2, 4, 4, 4, 2], [1.0, 2.0, 3.0, 3.1, 3.2, 2.1])
    assert found.law is None
    assert found.reason is not None
    assert f"needs {FEWEST_SIZES} different numbers of clients, and there are 3" in found.reason


def test_what_the_law_does_not_describe_is_refused() -> None:
    found = fit_usl(CLIENTS, [1000, 300, 4000, 200, 5000, 100, 900])
    assert found.law is None
    assert found.reason is not None
    assert "does not describe" in found.reason


@pytest.mark.parametrize(("n", "tps"), [([0, 1, 2], [1.0, 1.0, 1.0]), ([1, 2], [1.0, 0.0]), ([1, 2], [1.0])])
def test_what_is_no_measurement_is_an_error(n: list[int], tps: list[float]) -> None:
    with pytest.raises(ValueError, match="throughputs above 0"):
        fit_usl(n, tps)


def test_the_band_encloses_the_curve_and_the_fit_is_reproducible() -> None:
    noisy = [850.0, 1700.0, 3100.0, 4700.0, 6300.0, 5700.0, 4100.0]
    found = fit_usl(CLIENTS, noisy)
    assert found == fit_usl(CLIENTS, noisy)
    assert all(low <= tps <= high for _, tps, low, high in found.curve)
    assert set(plain(found.fitted())) >= {"lambda", "sigma", "kappa", "peak_n", "peak_tps", "r2"}
    assert found.reason is None


def test_a_grid_is_summed_up_with_a_law_for_each_of_its_curves(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    summary = summarise(grid(tmp_path_factory.mktemp("grid") / "run"))
    (found,) = summary["grids"]
    assert set(found["parameters"]) == {"scale", "clients", "threads", "protocol"}
    assert len(found["cells"]) == 48
    assert all(cell["tps"]["value"] > 0 and cell["reason"] is None for cell in found["cells"])
    assert len(summary["scaling"]) == 8, "one for each scale, protocol and number of threads"
    for entry in summary["scaling"]:
        assert entry["over"] == "clients"
        assert "clients" not in entry["fixed"]
        assert len(entry["points"]) == 6
        assert entry["fit"]["kappa"]["low"] <= 0.003 <= entry["fit"]["kappa"]["high"]
        assert entry["fit"]["peak_n"]["value"] == pytest.approx(peak(0.04, 0.003), rel=0.15)
