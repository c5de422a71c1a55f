"""SIGKILL at random moments of a storm of uploads: what was acknowledged is there, whole and once."""

from tests.bench.kill_storm import storm
from tests.seeds import cases


def test_no_acknowledged_result_is_lost(seeded_url: str) -> None:
    report = storm(seeded_url, kills=cases(3, few=1), clients=6)
    assert (report.lost, report.duplicated, report.half) == (0, 0, 0)
    assert report.acknowledged >= report.kills  # how many depends on the machine; none lost does not
    assert report.sent_again > 0
