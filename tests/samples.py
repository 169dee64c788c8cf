"""Which cases of the large grids `make test` runs; `make test-full` runs them all.

A word: the first case of each value of that parameter. A number: so many, spread evenly. 0: none.
CONTRIBUTING.md says what is left out, and why.
"""

from collections import defaultdict

SAMPLES = {
    "test_unknown_audit.py::test_a_wrong_ledger_is_found": "step",
    "test_vetoes.py::test_every_attack_finds_a_ledger_that_does_not_look": "wrong",
    "test_unknown_audit.py::test_a_ledger_that_knows_only_what_was_told_is_found": 1,
    "test_hostile.py::test_a_wrong_ledger_is_found": "wrong",
    "test_counted_intervals.py::test_an_interval_that_does_not_see_a_manner_is_found": "wrong",
    "test_lost_feedback.py::test_a_ledger_that_does_not_see_a_manner_is_found": "wrong",
    "test_audit.py::test_the_command_counts_every_collector_and_ends_with_0": 0,
    "test_experiments.py::test_all_is_drawn_again_from_the_tables_alone_with_the_same_bytes": 0,
    "test_steps.py::test_another_process_computes_the_same_rows": 3,
    "test_theory.py::test_a_design_that_is_stopped_at_once_still_has_a_price_of_at_least_one": 1,
    "test_numbers.py::test_designs_do_not_depend_on_the_unit": "name",
    "test_returns_from_scratch.py::test_any_order_of_asking_telling_and_losing": 2,
    "test_from_scratch.py::test_any_order_of_asking_telling_and_losing": 2,
    "test_delivery.py::test_more_losses_and_more_trials_out_never_cost_less": 1,
    "test_delivery.py::test_what_is_declared_pays": 1,
    "test_delivery.py::test_predictions_agree_with_campaigns": 2,
    "test_estimate.py::test_off_policy_estimates_are_centred_with_honest_errors_and_intervals": 1,
    "test_cli.py::test_a_narrow_terminal_breaks_no_words": 2,
    "test_experiments.py::test_killed_at_random_moments_it_ends_as_if_it_had_not_been": 1,
    "test_promise.py::test_the_promise_holds_whatever_is_told_first_or_never": 1,
    "test_engines.py::test_a_long_run_stays_equal": 0,
    "test_best.py::test_the_promise_on_worlds_against_it": 2,
    "test_theory.py::test_more_risk_never_costs_more": 1,
    "test_theory.py::test_more_episodes_never_cost_more": 1,
}


def chosen(items):
    """The tests that are run, and those that are left to the full run."""
    groups = defaultdict(list)
    for item in items:
        name = f"{item.path.name}::{item.originalname}"
        groups[name if name in SAMPLES else item.path.name].append(item)
    left = set()
    for name, cases in groups.items():
        if name in SAMPLES:
            kept = _kept(cases, SAMPLES[name])
            left |= {case.nodeid for case in cases if case not in kept}
    return [item for item in items if item.nodeid not in left], [
        item for item in items if item.nodeid in left
    ]


def _kept(cases, sample):
    if isinstance(sample, int):
        return [cases[(2 * i + 1) * len(cases) // (2 * sample)] for i in range(min(sample, len(cases)))]
    first = {}
    for case in cases:
        first.setdefault(str(case.callspec.params[sample]), case)
    return list(first.values())
