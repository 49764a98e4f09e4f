"""Every compiled function has a twin of its own name in mpmath, or is listed as a part of one."""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import pytest

from hockeystick import kernels

# Bounds of integrals, choices of steps and cells, and inner loops: no quantity has only these.
# What uses them is held against mpmath's integral in the tests of the kernel or of its loss, and
# sums of integers against Python's.
PARTS = {
    "contour_sums": "deltas estimates log_cks_factor weights",
    "doubling": "place value",
    "fixed_size_gaussian": (
        "cumulant_sums log_box_bound log_ellipse_bound log_panel_error log_ratio mgf_line nodes"
        " odds_of panels reach"
    ),
    "integer_sums": "add_rounded add_squares",
    "inverse_transform": "bit_length",
    "jumps": "log_decay log_nodes_left_out log_window_bound widest_window_step",
    "long_lines": "add_exactly add_near add_powers add_pull gather",
    "near_outputs": (
        "log_below log_beyond log_far_power log_near_strip_bound near_cumulant_sums near_span"
        " rough_end widest_near_step windows"
    ),
    "normal_masses": "number_of_terms term_after",
    "sampled_gaussian": (
        "below_rate cell_bounds cell_width cgf_estimate coarse_step exact_step far_mode log_add"
        " log_strip_bound log_tails quadrature_nodes rough_nodes rough_span span step_within"
        " trapezoid_rule widest_step within_reach"
    ),
    "sampled_gaussian_contour": (
        "alias_window at_orders composed_line contour highest_order is_far least_window"
        " line_through log_truncation minorants quadratures saddle saddle_terms sufficient_height"
        " total"
    ),
    "series": (
        "add_block e2_round_off first_of_block last_term log_line log_values"
        " logs_at logs_of_line rough_e2 small_e2 sum_line weighted_e2"
    ),
    "uniform_minorant": (
        "level_and_loss level_set_width level_sets_of_mode minorant signed_log_density"
        " signed_loss signed_modes slope_root"
    ),
}


def compiled_in(room: str) -> set[str]:
    """Return the names of the compiled functions that a module defines."""
    module = import_module(f"hockeystick.kernels.{room}")
    return {
        name
        for name, one in vars(module).items()
        # An interruptible function is wrapped around the compiled one.
        if hasattr(one, "py_func") or hasattr(getattr(one, "__wrapped__", None), "py_func")
        if one.__module__ == module.__name__
    }


@pytest.mark.parametrize("module", [one.name for one in iter_modules(kernels.__path__)])
def test_what_has_no_twin_is_listed_as_a_part(module: str) -> None:
    # Of a kernel that only tests ask for in mpmath, the twin lies beside them.
    rooms = (f"{room}.precision.{module}" for room in ("hockeystick", "tests"))
    twins = {name for room in rooms if find_spec(room) for name in vars(import_module(room))}
    assert sorted(compiled_in(module) - twins) == PARTS.get(module, "").split()


def test_compiled_functions_are_found() -> None:
    assert {"cumulant_sums", "e2", "mgf_line"} <= compiled_in("series")
    assert compiled_in("compiled") == set()
