"""What every store must do; a new one is a row in `stores`."""

import inspect
import threading
import time

import pytest
from journal.stores import BANDIT, opened, told

import saver
from saver import Campaign, scenarios
from saver.errors import CampaignEnded, InvalidData, StoreFailed, TooManyOut
from saver.journal import Reserved, connect


def test_it_is_the_campaign_in_memory_event_by_event(url):
    plain = Campaign(BANDIT.problem, "saver-opt", 60, seed=3, keep="episodes")
    with opened(url) as campaign:
        for number in range(1, 41):
            trials = campaign.ask(), plain.ask()
            for one, trial in zip((campaign, plain), trials, strict=True):
                if number % 7 == 0:
                    one.abandon(trial)
                elif number % 11 == 0:
                    one.cancel(trial)
                else:
                    one.tell(trial, *told(trial))
        campaign.extend(2), plain.extend(2)
        stored, live = campaign.events, plain.events
        assert [repr(saver.problem.codec.pack(one)) for one in stored] == [
            repr(saver.problem.codec.pack(one)) for one in live
        ]
        state = plain.state() | {"events": None, "checksum": None}
        assert campaign.state() | {"checksum": None} == state
        assert campaign.estimate().value == plain.estimate().value
        assert campaign.budget == plain.budget


@pytest.mark.parametrize("collector", ["saver", "sepec", "safe-on-policy"])
def test_what_is_opened_again_is_what_was_closed(url, collector):
    with opened(url, collector=collector) as campaign:
        for _ in range(10):
            trial = campaign.ask()
            campaign.tell(trial, *told(trial))
        out, state = campaign.ask(), campaign.state()
    with opened(url, collector=collector) as again:
        assert again.state() == state
        assert again.tell(out, *told(out)) == "told"
        assert again.verify().records == 23  # created, 11 asked, 11 told
    with saver.open(url, "shop") as alone:  # what it is made of is stored
        assert alone.problem.required == BANDIT.problem.required
        assert sum(alone._writing.fold.state.told.values()) == 11


def test_it_is_no_campaign_and_has_all_that_one_has(url):
    def said(method):
        return [(one.name, one.kind, one.default) for one in inspect.signature(method).parameters.values()]

    with opened(url) as campaign:
        assert not isinstance(campaign, Campaign)
        for name, its in inspect.getmembers(Campaign):
            if name.startswith("_") or name in ("of", "restore"):
                continue
            assert hasattr(campaign, name)
            if inspect.isfunction(its) and name not in ("ask", "tell"):
                mine = getattr(type(campaign), name)
                assert (name, said(mine)) == (name, said(its))
                assert mine.__doc__
    assert campaign.problem is not None  # what never changes can be asked of a closed one


def test_history_is_a_record_and_is_not_learned_twice(url):
    past = saver.History.of(BANDIT.problem, [saver.Episode([0], [0], [1.0], [0.5])] * 5)
    with opened(url, history=past) as campaign:
        assert [record.kind for record in campaign.records()] == ["created", "learned"]
        assert campaign.counts.sum() == 5
    with opened(url, history=past) as again:
        assert again.counts.sum() == 5
    with pytest.raises(StoreFailed, match="made of something else: history is"):
        opened(url)


def test_two_that_share_it_never_get_the_same_trial(url):
    with opened(url) as one, opened(url) as other:
        first, second, third = one.ask(), other.ask(), one.ask()
        assert (first.number, second.number, third.number) == (1, 2, 3)
        assert other.tell(first, *told(first)) == "told"
        assert one.tell(first, *told(first)) == "again"
        assert list(one.outstanding) != []
        assert {trial.number for trial in one.outstanding} == {2, 3}
        assert one.state() == other.state()


def test_a_tell_says_what_became_of_it(url):
    with opened(url) as campaign:
        trial, lost, free = campaign.ask(n=3)
        assert campaign.tell(trial, *told(trial)) == "told"
        assert campaign.tell(trial.number, *told(trial)) == "again"
        states, actions, rewards, constraints = told(trial)
        with pytest.raises(InvalidData, match="trial 1 was told already, and otherwise"):
            campaign.tell(trial, states, actions, [rewards[0] + 1.0], constraints)
        campaign.abandon(lost)
        campaign.cancel(free)
        before = campaign.state()
        assert campaign.tell(lost, *told(lost)) == "late"
        assert campaign.tell(lost, *told(lost)) == "late"
        assert campaign.tell(free, *told(free)) == "late"
        assert campaign.state() == before
        assert [record.kind for record in campaign.records()].count("late") == 2
        with pytest.raises(InvalidData, match="trial 9 was never asked"):
            campaign.tell(9, *told(trial))
        with pytest.raises(InvalidData, match="rewards"):
            campaign.tell(lost, states, actions, [float("nan")], constraints)
        assert campaign.verify().records == len(campaign.records())


def test_several_are_told_together_or_not_at_all(url):
    with opened(url) as campaign, opened(url) as other:
        trials = campaign.ask(n=4)
        first, lost, third, fourth = trials
        played = [(trial, *told(trial)) for trial in trials]
        other.abandon(lost)
        before = campaign.records()
        bad = (third, [0], [third.act(0, 0)], [float("nan")], [0.5])
        with pytest.raises(InvalidData, match="rewards"):
            campaign.tell_all([played[0], bad])
        with pytest.raises(InvalidData, match="trial 1 is told twice in one call"):
            campaign.tell_all([played[0], played[3], played[0]])
        with pytest.raises(InvalidData, match="trial 9 was never asked"):
            campaign.tell_all([played[0], (9, *told(first))])
        reserved = campaign.ask(start=False)
        with pytest.raises(InvalidData, match="is reserved"):
            campaign.tell_all([played[0], (reserved, *told(first))])
        assert [record.kind for record in campaign.records()[len(before) :]] == ["asked"]
        assert campaign.tell(fourth, *told(fourth)) == "told"
        episodes = [(first, saver.Episode(*told(first))), *played[1:]]
        assert campaign.tell_all(episodes) == ["told", "late", "told", "again"]
        assert campaign.tell_all([]) == []
        assert other.state() == campaign.state()
        assert campaign.verify().records == len(campaign.records())


def test_a_key_makes_a_request_safe_to_repeat(url):
    with opened(url) as campaign:
        trials = campaign.ask(n=3, key="a")
        assert [one.number for one in campaign.ask(n=3, key="a")] == [1, 2, 3]
        with pytest.raises(InvalidData, match="the key 'a' has asked for 3 trials, not for 2"):
            campaign.ask(n=2, key="a")
        assert campaign.tell(trials[0], *told(trials[0]), key="b") == "told"
        assert campaign.tell(trials[0], *told(trials[0]), key="b") == "again"
        with pytest.raises(InvalidData, match="the key 'b' was used for something else: trial 1 told"):
            campaign.tell(trials[1], *told(trials[1]), key="b")
        with pytest.raises(InvalidData, match="the key 'b' was used for something else"):
            campaign.ask(key="b")
        assert [one.number for one in campaign.ask(n=3, key="a")] == [
            2,
            3,
        ]  # what was told must not run again
        with pytest.raises(InvalidData, match="key is ''"):
            campaign.ask(key="")
        assert campaign.outstanding.keys()
        assert len(campaign.outstanding) == 2


def test_a_started_trial_expires_into_abandoned_and_a_reserved_one_into_cancelled(url):
    with opened(url, lease=0.3) as campaign:
        ran, never = campaign.ask(), campaign.ask(start=False)
        assert isinstance(never, Reserved)
        with pytest.raises(InvalidData, match=r"trial 2 is reserved and was not started.*campaign\.start"):
            never.act(0, 0)
        with pytest.raises(InvalidData, match="trial 2 is reserved"):
            campaign.tell(never, [0], [0], [0.0], [0.0])
        with pytest.raises(InvalidData, match="trial 2 is reserved"):
            campaign.tell(2, [0], [0], [0.0], [0.0])
        time.sleep(0.4)
        assert campaign.expire() == [1, 2]
        kinds = {record.trial: record.kind for record in campaign.records() if record.trial}
        assert kinds == {1: "abandoned", 2: "cancelled"}
        with pytest.raises(InvalidData, match="trial 2 was cancelled"):
            campaign.start(never)
        assert campaign.tell(ran, *told(ran)) == "late"
        assert campaign._writing.fold.state.left(60) == 59


def test_with_an_order_nothing_starts_before_what_is_reserved(url):
    with opened(url, order="asked") as campaign:
        first, second = campaign.ask(n=2, start=False)
        with pytest.raises(InvalidData, match="trial 2 cannot start before trial 1, which is reserved"):
            campaign.start(second)
        with pytest.raises(InvalidData, match="trial 3 cannot start before trial 1"):
            campaign.ask()
        campaign.start(first), campaign.start(second)
        assert campaign.ask().number == 3


def test_only_what_was_reserved_and_not_started_can_be_cancelled_unseen(url):
    with opened(url) as campaign, opened(url) as other:
        started, reserved, late = campaign.ask(), campaign.ask(start=False), campaign.ask(start=False)
        other.start(late)
        for trial in (started, late.number):
            with pytest.raises(InvalidData, match=r"unseen is True, but trial \d was started.*start=False"):
                campaign.cancel(trial, unseen=True)
        other.cancel(reserved, unseen=True)
        campaign.cancel(reserved)  # it was cancelled already
        campaign.cancel(started)
        events = [record.event for record in campaign.records() if record.kind == "cancelled"]
        assert [(event.number, event.unseen) for event in events] == [(2, True), (1, False)]
    with opened(url, lease=0.2) as campaign:
        campaign.ask(start=False)
        time.sleep(0.3)
        campaign.expire()
        assert campaign.records()[-1].event.unseen


def test_a_reserved_trial_that_starts_is_a_trial_and_its_lease_can_be_renewed(url):
    with opened(url, lease=0.6) as campaign:
        trial = campaign.start(campaign.ask(start=False))
        assert campaign.start(trial).number == trial.number  # again: nothing changes
        for _ in range(3):
            time.sleep(0.3)
            campaign.renew(trial)
        assert campaign.tell(trial, *told(trial)) == "told"
        kinds = [record.kind for record in campaign.records()]
        assert kinds == ["created", "asked", "started", "renewed", "renewed", "renewed", "told"]


def test_no_more_are_out_than_may_be_and_no_more_are_asked_for_than_there_are(url):
    with opened(url, episodes=5, max_out=3) as campaign:
        campaign.ask(n=2)
        with pytest.raises(TooManyOut, match="2 trials are out, and 2 more are asked for; max_out is 3"):
            campaign.ask(n=2)
        campaign.abandon(1), campaign.abandon(2)
        assert [trial.number for trial in campaign.ask(n=3)] == [3, 4, 5]
        with pytest.raises(CampaignEnded, match="all 5 episodes"):
            campaign.ask()
    with opened(url, episodes=5, max_out=30) as again:
        again.cancel(5)
        assert [trial.number for trial in again.ask(n=9)] == [6]  # as many as are left


def test_a_leader_is_alone_and_a_killed_or_closed_one_leaves_nothing_behind(url):
    with opened(url, mode="leader") as leader:
        assert leader.ask().number == 1
        with pytest.raises(StoreFailed, match="a leader holds the campaign"):
            opened(url)
        with pytest.raises(StoreFailed, match="open elsewhere"):
            opened(url, mode="leader")
    with opened(url) as one:
        assert one.ask().number == 2
        with pytest.raises(StoreFailed, match="open elsewhere"):
            opened(url, mode="leader")
    with pytest.raises(StoreFailed, match="was closed"):
        one.ask()
    with pytest.raises(StoreFailed, match="closed"):
        leader.ask()


def test_threads_of_a_leader_share_it_and_nothing_is_lost(url):
    with opened(url, mode="leader", episodes=200) as campaign:
        answers = []

        def work():
            for _ in range(20):
                trial = campaign.ask()
                answers.append((trial.number, campaign.tell(trial, *told(trial))))

        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [(number, "told") for number in range(1, 121)]
        assert campaign.verify().records == 241


def test_a_refused_request_changes_nothing_and_hurts_no_other(url):
    with opened(url, mode="leader") as campaign:
        trial = campaign.ask()
        with pytest.raises(InvalidData, match="actions"):
            campaign.tell(trial, [0], [99], [0.0], [0.0])
        assert len(campaign.records()) == 2
        assert campaign.tell(trial, *told(trial)) == "told"


def test_a_block_renews_tells_and_abandons(url):
    with opened(url, lease=0.6) as campaign:
        with campaign.trial() as trial:
            time.sleep(0.9)
            assert trial.tell(*told(trial)) == "told"
        with pytest.raises(ZeroDivisionError), campaign.trial():
            1 / 0  # noqa: B018
        with campaign.trial():
            pass  # left without a word
        assert campaign._writing.fold.state.abandoned == {2, 3}
        assert "renewed" in [record.kind for record in campaign.records()]


def test_snapshots_are_where_replay_begins_and_agree_with_it(url, monkeypatch):
    monkeypatch.setattr("saver.journal.writing.EVERY", 10)
    with opened(url) as campaign:
        for _ in range(12):
            trial = campaign.ask()
            campaign.tell(trial, *told(trial))
        held = campaign.ask(n=2)
        place = campaign.snapshot()
        assert place == 27
        assert campaign.snapshot() == 27
        found = campaign.verify()
        assert (found.records, found.snapshots) == (27, 3)
    with opened(url) as again:
        assert again._journal.snapshots(again.header.id) == [10, 20, 27]
        assert [again.tell(trial, *told(trial)) for trial in held] == ["told", "told"]
        assert again.verify().records == 29


def test_a_changed_problem_collector_or_seed_is_refused_with_what_differs(url):
    opened(url).close()
    with pytest.raises(StoreFailed, match="seed is 4, and was 3"):
        opened(url, seed=4)
    with pytest.raises(StoreFailed, match="made of something else: collector"):
        opened(url, collector="saver")
    with pytest.raises(StoreFailed, match=r"made of something else: problem\.alpha is 0\.5"):
        opened(url, problem=scenarios.bandit(alpha=0.5).problem)
    with pytest.raises(StoreFailed, match="has a campaign 'shop' already"):
        opened(url, exists="refuse")
    with pytest.raises(StoreFailed, match=r"has no campaign 'other' \(it has: shop\)"):
        saver.open(url, "other")


@pytest.mark.parametrize("name", ["", "a b", "../x", "é", "-x", "x" * 101, 3, None])
def test_odd_names_are_refused(url, name):
    with pytest.raises(InvalidData, match="the name is"):
        saver.open(url, name, BANDIT.problem, "saver", 10)


def test_a_body_that_is_too_large_is_refused_and_changes_nothing(url, monkeypatch):
    monkeypatch.setattr("saver.journal.protocol.LARGEST", 300)
    with opened(url, collector="on-policy") as campaign:
        records = len(campaign.records())
        with pytest.raises(InvalidData, match="MB; one episode may take"):
            campaign.ask()
        assert len(campaign.records()) == records


def test_campaigns_of_one_store_do_not_meet(url):
    with opened(url) as one, saver.open(url, "other", BANDIT.problem, "saver", 30) as other:
        assert (one.ask().number, one.ask().number, other.ask().number) == (1, 2, 1)
        journal = connect(url)
        assert [header.name for header in journal.campaigns()] == ["shop", "other"]
        journal.close()
