"""Campaigns that survive: every step is in a store before anybody hears of it. `saver.open` is the door."""

from saver.journal.copying import backup, restore
from saver.journal.durable import DurableCampaign
from saver.journal.leases import Lease
from saver.journal.opening import connect, open_campaign
from saver.journal.protocol import Journal
from saver.journal.records import Header, Record
from saver.journal.running import Reserved, Running
from saver.journal.verify import Verified

__all__ = [
    "DurableCampaign",
    "Header",
    "Journal",
    "Lease",
    "Record",
    "Reserved",
    "Running",
    "Verified",
    "backup",
    "connect",
    "open_campaign",
    "restore",
]
