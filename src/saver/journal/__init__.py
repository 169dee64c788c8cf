"""Campaigns that survive: every step is in a store before anybody hears of it. `saver.open` is the door."""

from saver._late import moved
from saver.journal.durable import DurableCampaign
from saver.journal.folding import Lease, Verified
from saver.journal.opening import backup, connect, restore
from saver.journal.protocol import Header, Journal, Record
from saver.journal.requests import Reserved, Running

__all__ = [
    "DurableCampaign", "Header", "Journal", "Lease", "Record", "Reserved", "Running", "Verified", "backup",
    "connect", "restore",
]  # fmt: skip
__getattr__ = moved(__name__, {"open_campaign": "saver.open"})
