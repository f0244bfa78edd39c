import pytest

from musepi_tui.providers.protocol import merge_headers, with_cost
from musepi_tui.providers.types import Prices
from musepi_tui.session.messages import Cost, Usage

PRICES = Prices(1, 10, 0.1, 1.25, ({"inputTokensAbove": 100, "input": 2, "output": 20},))


@pytest.mark.parametrize(
    ("usage", "total"),
    [
        (Usage(input=50, output=10, cache_read=20, cache_write=20), 50 + 100 + 2 + 25),
        (Usage(input=50, output=10, cache_write=20, cache_write_1h=20), 50 + 100 + 40),
        (Usage(input=101, output=10), 202 + 200),
        (Usage(input=60, output=10, cache_read=60), 120 + 200 + 6),
    ],
    ids=["plain", "hour cache", "tier", "tier by the whole prompt"],
)
def test_cost_follows_the_rates(usage, total):
    assert with_cost(usage, PRICES).cost.total == pytest.approx(total / 1e6)


def test_price_the_server_named_is_kept():
    usage = Usage(input=5, cost=Cost(total=0.5))
    assert with_cost(usage, PRICES) is usage


def test_headers_are_merged_without_case_and_none_removes():
    merged = merge_headers({"Accept": "a", "X-One": "1"}, {"accept": "b", "x-one": None}, {"X-Two": "2"})
    assert merged == {"accept": "b", "x-two": "2"}
