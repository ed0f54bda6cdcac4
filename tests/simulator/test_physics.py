"""What a move takes, by bytes and by where it goes."""

from pathlib import Path

import pytest

from scheduler.simulator.arrivals import Arrival
from scheduler.simulator.fleets import Links, grid, node
from scheduler.simulator.physics import Costs, UnreadableCostsError, slowest_link

GB = 10**9


def test_nodes_write_and_read_side_by_side():
    costs = Costs(checkpoint_s=5, restore_s=7, store_gb_s=2)
    one = costs.move(40 * GB, 1, 1)
    two = costs.move(40 * GB, 2, 4)
    assert (one.checkpoint_s, one.transfer_s, one.restore_s) == (25, 0, 27)
    assert (two.checkpoint_s, two.restore_s) == (15, 12)


def test_a_transfer_goes_at_the_pace_of_its_slowest_link():
    near, far = grid(2, 8), grid(8, 8, rack_size=1)
    links = Links(rack=10e9, cluster=1e9)
    assert slowest_link(links, near.nodes[:1], near.nodes[1:]) == 10e9
    assert slowest_link(links, far.nodes[:1], far.nodes[1:3]) == 1e9
    assert slowest_link(links, near.nodes[:1], near.nodes[:1]) is None
    assert Costs().move(20 * GB, 1, 1, 1e9).transfer_s == 20


def test_off_means_at_once_and_for_nothing():
    assert Costs.off().move(100 * GB, 1, 1, 1e9).total_s == 0
    assert Costs.off().pace(2, 8) == 0.25


def test_the_image_grows_with_the_devices_unless_it_is_known():
    costs = Costs(image_gb_per_gpu=3)
    assert costs.image(Arrival(id="a", submitted_at=0, duration_s=1, gpus=4)) == 12 * GB
    assert costs.image(Arrival(id="a", submitted_at=0, duration_s=1, gpus=4, image=5)) == 5


def test_a_squeezed_job_is_slower_by_its_devices_and_a_little_more():
    assert Costs(squeeze=0.03).pace(4, 4) == 1
    assert Costs(squeeze=0.03).pace(2, 4) == pytest.approx(0.485)


def test_a_job_that_lies_apart_is_slower_where_that_is_asked_for():
    costs = Costs(across_nodes=0.1, across_racks=0.2, across_clusters=0.4)
    near = node("a", 8, rack="r1")
    beside = node("b", 8, rack="r1")
    far = node("c", 8, rack="r2")
    away = node("d", 8, rack="r1", cluster="other")
    assert costs.together([near, near]) == 1
    assert costs.together([near, beside]) == pytest.approx(0.9)
    assert costs.together([near, beside, far]) == pytest.approx(0.8)
    assert costs.together([near, away]) == pytest.approx(0.6)
    assert costs.nearness_counts and not Costs().nearness_counts
    assert Costs().together([near, away]) == 1


def test_costs_from_a_file(tmp_path: Path):
    path = tmp_path / "costs.toml"
    path.write_text("checkpoint_s = 3\nstore_gb_s = 1.5\n")
    assert Costs.read(path) == Costs(checkpoint_s=3, store_gb_s=1.5)
    path.write_text("chekpoint_s = 3\n")
    with pytest.raises(UnreadableCostsError, match="chekpoint_s"):
        Costs.read(path)
    path.write_text("across_racks = 1.5\n")
    with pytest.raises(UnreadableCostsError, match="across_racks is a part of the pace"):
        Costs.read(path)
    path.write_text("restore_s = true\n")
    with pytest.raises(UnreadableCostsError, match="restore_s"):
        Costs.read(path)
