"""The reader: what it accepts, that it names every fault at once, and how fast it is."""

import dataclasses
import shutil
import time
from pathlib import Path

import pytest

from catalog.read import DEFAULT_ROOT, Catalog, CatalogError, digest, read_catalog

DEVICE = """
[provenance]
source = "a datasheet"
retrieved_on = 2026-11-21
checked = "read"

[[device]]
id = "one"
name = "One"
vendor = "Vendor"
architecture = "A"
family = "a"
category = "datacenter_gpu"
status = "shipping"
memory_gib = 80
memory_bandwidth_gb_per_s = 3000
link_one_direction_gb_per_s = 450
link_domain_devices = 8
"""
NODE = """
[provenance]
source = "a price list"
retrieved_on = 2026-11-21
checked = "read"

[[node]]
id = "one-8"
name = "Eight ones"
device = "one"
devices = 8
kind = "hgx_8"
link_domain_devices = 8
"""
OFFERS = "id,node,max_nodes,notes\ncloud:one-8:here:on_demand,one-8,,\n"
PRICES = (
    "offer,valid_from,usd_per_hour,confidence,source,retrieved_on\n"
    "cloud:one-8:here:on_demand,2026-01-01,20.000000,high,list,2026-11-21\n"
)
PROVIDERS = """
[[provider]]
id = "cloud"
name = "Cloud"
provider_class = "specialist"
places = { here = "Hereford" }
provenance = { source = "its page", retrieved_on = 2026-11-21, checked = "read" }
"""
LINES = """
[[line]]
id = "ones"
name = "Ones"
vendor = "Vendor"
device_class = "datacentre"
devices = ["one"]
provenance = { source = "its page", retrieved_on = 2026-11-21, checked = "read" }
"""
SOURCES = '[sources.list]\ntext = "the price list of a cloud"\n'


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A small catalog release that reads without fault."""
    for name, content in {
        "devices/all.toml": DEVICE,
        "nodes/all.toml": NODE,
        "offers/cloud.csv": OFFERS,
        "prices/cloud.csv": PRICES,
        "prices/sources.toml": SOURCES,
        "providers/all.toml": PROVIDERS,
        "device_lines/all.toml": LINES,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return tmp_path


def replace(release: Path, name: str, old: str, new: str) -> None:
    path = release / name
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new), encoding="utf-8")


def problems(release: Path) -> tuple[str, ...]:
    with pytest.raises(CatalogError) as caught:
        read_catalog(release)
    return caught.value.problems


class TestWhatIsRead:
    def test_a_small_release(self, release: Path) -> None:
        catalog = read_catalog(release)
        assert list(catalog.devices) == ["one"]
        assert catalog.nodes["one-8"].device == "one"
        assert catalog.offers["cloud:one-8:here:on_demand"].region == "here"
        assert str(catalog.prices[0].usd_per_hour) == "20.000000"
        assert catalog.prices[0].source == "the price list of a cloud"

    def test_folders_without_files_are_empty(self, release: Path) -> None:
        catalog = read_catalog(release)
        assert catalog.llms == {}
        assert catalog.constants == ()
        assert catalog.energy == {}

    def test_constants_come_from_their_folder(self, release: Path) -> None:
        (release / "constants").mkdir()
        (release / "constants" / "a.toml").write_text(
            '[[constant]]\nname = "memory_efficiency"\nfamily = "a"\nvalue = 0.8\nlow = 0.7\nhigh = 0.9\nunit = "1"\n'
            'basis = "measured"\n'
            'provenance = { source = "runs", retrieved_on = 2026-11-21, checked = "measured" }\n',
            encoding="utf-8",
        )
        assert read_catalog(release).constants[0].value == 0.8

    def test_a_device_has_the_class_of_its_line(self, release: Path) -> None:
        assert read_catalog(release).device_lines["one"].device_class == "datacentre"

    @pytest.mark.parametrize(
        ("old", "new", "found"),
        [
            ('devices = ["one"]', 'devices = ["two"]', "line ones: unknown device 'two'"),
            ('vendor = "Vendor"', 'vendor = "Other"', "line ones: one is made by Vendor, the line by Other"),
            ('devices = ["one"]', 'devices = ["one", "one"]', "device one: in 2 product lines"),
        ],
    )
    def test_lines_hold_every_device_once(self, release: Path, old: str, new: str, found: str) -> None:
        replace(release, "device_lines/all.toml", old, new)
        assert any(problem.startswith(found) for problem in problems(release))

    @pytest.mark.parametrize(
        ("old", "new", "found"),
        [
            ("here =", "there =", "provider cloud: 'here' is in neither places nor no_place"),
            ('id = "cloud"', 'id = "fog"', "offers in 'here': unknown provider 'cloud'"),
            ("places =", 'no_place = ["here"]\nplaces =', "provider cloud: 'here' both names a place and names none"),
            ('"specialist"', '"broker"', "providers/all.toml: cloud: provider_class: "),
        ],
    )
    def test_every_region_of_an_offer_is_named_or_said_to_name_nothing(
        self, release: Path, old: str, new: str, found: str
    ) -> None:
        replace(release, "providers/all.toml", old, new)
        assert any(problem.startswith(found) for problem in problems(release))

    def test_partitions_must_fit_their_device(self, release: Path) -> None:
        (release / "partitions").mkdir()
        row = (
            '[[partition]]\ndevice = "{device}"\nprofile = "1g"\ninstances = {instances}\nmultiprocessors = 16\n'
            "device_multiprocessors = 132\nmemory_gib = 1.0\nslices = 1\ndevice_slices = 8\n"
            'provenance = {{ source = "a guide", retrieved_on = 2026-11-21, checked = "read" }}\n'
        )
        path = release / "partitions" / "a.toml"
        path.write_text(row.format(device="one", instances=7), encoding="utf-8")
        assert read_catalog(release).partitions[0].profile == "1g"
        path.write_text(row.format(device="one", instances=9) + row.format(device="two", instances=7), encoding="utf-8")
        assert problems(release) == (
            "partition 1g of one: 9 instances of 16 multiprocessors exceed the device's 132",
            "partition 1g of one: 9 instances of 1 slices exceed the device's 8",
            "partition 1g of two: unknown device",
        )

    def test_an_entry_overrides_the_provenance_of_its_file(self, release: Path) -> None:
        path = release / "devices/all.toml"
        path.write_text(path.read_text() + '[device.provenance]\nchecked = "memory"\n', encoding="utf-8")
        provenance = read_catalog(release).devices["one"].provenance
        assert (provenance.checked, provenance.source) == ("memory", "a datasheet")

    def test_an_empty_price_withdraws_the_offer(self, release: Path) -> None:
        path = release / "prices/cloud.csv"
        path.write_text(PRICES + "cloud:one-8:here:on_demand,2026-06-01,,high,list,2026-11-21\n", encoding="utf-8")
        assert read_catalog(release).prices[1].usd_per_hour is None

    def test_a_catalog_cannot_be_changed(self, release: Path) -> None:
        catalog = read_catalog(release)
        with pytest.raises(dataclasses.FrozenInstanceError):
            catalog.prices = ()


class TestFaults:
    def test_all_faults_are_named_at_once(self, release: Path) -> None:
        replace(release, "devices/all.toml", "memory_gib = 80", 'memory_gib = -1\ncolour = "red"')
        replace(release, "offers/cloud.csv", "one-8,,", "nine,,")
        replace(release, "prices/cloud.csv", "20.000000", "cheap")
        found = "\n".join(problems(release))
        for fault in ("one: memory_gib", "one: colour", "unknown node 'nine'", "prices/cloud.csv:2", "usd_per_hour"):
            assert fault in found

    @pytest.mark.parametrize(
        ("name", "old", "new", "fault"),
        [
            ("devices/all.toml", "[[device]]", "[[device]", "devices/all.toml:"),
            ("devices/all.toml", "[[device]]", "[[gadget]]", "unknown tables gadget"),
            ("devices/all.toml", 'source = "a datasheet"', "", "provenance.source"),
            ("devices/all.toml", "memory_gib = 80", "memory_gib = nan", "memory_gib"),
            ("devices/all.toml", "memory_gib = 80", "", "no memory_gib, and not listed as missing"),
            ("devices/all.toml", "memory_gib = 80", 'memory_gib = 80\nmissing = ["memory_gib"]', "has a value"),
            ("devices/all.toml", "memory_gib = 80", 'memory_gib = 80\nmissing = ["speed"]', "unknown field 'speed'"),
            ("nodes/all.toml", 'device = "one"', 'device = "two"', "unknown device 'two'"),
            ("nodes/all.toml", "devices = 8\nkind", "devices = 4\nkind", "a link domain of 8 among 4 devices"),
            ("devices/all.toml", "link_domain_devices = 8", "link_domain_devices = 2", "one joins 2 at most"),
            (
                "nodes/all.toml",
                "link_domain_devices = 8",
                "link_domain_devices = 8\nrack_domain_devices = 4",
                "smaller",
            ),
            ("offers/cloud.csv", "cloud:one-8", "sky:one-8", "expected cloud:instance:region:commitment"),
            ("offers/cloud.csv", ":on_demand", ":sometimes", "commitment"),
            ("offers/cloud.csv", "id,node", "node,id", "columns"),
            ("offers/cloud.csv", "one-8,,", "one-8,", "expected 4 cells"),
            ("prices/cloud.csv", "20.000000", "0", "usd_per_hour"),
            ("prices/cloud.csv", "20.000000", "20.0000001", "usd_per_hour"),
            ("prices/cloud.csv", "high,list", "high,rumour", "no source 'rumour'"),
            ("prices/cloud.csv", "here:on_demand", "there:on_demand", "unknown offer"),
        ],
    )
    def test_each_fault_is_named(self, release: Path, name: str, old: str, new: str, fault: str) -> None:
        replace(release, name, old, new)
        assert any(fault in problem for problem in problems(release)), problems(release)

    def test_the_same_id_in_two_files(self, release: Path) -> None:
        shutil.copy(release / "devices/all.toml", release / "devices/again.toml")
        assert problems(release) == ("devices/all.toml: one: id 'one' appears twice",)

    def test_two_price_steps_on_one_day(self, release: Path) -> None:
        path = release / "prices/cloud.csv"
        path.write_text(PRICES + PRICES.splitlines()[1] + "\n", encoding="utf-8")
        assert problems(release) == ("offer cloud:one-8:here:on_demand: 2 price steps on 2026-01-01",)

    def test_an_offer_without_price(self, release: Path) -> None:
        (release / "prices/cloud.csv").unlink()
        assert problems(release) == ("offer cloud:one-8:here:on_demand: no price",)

    def test_a_constant_outside_its_own_range(self, release: Path) -> None:
        (release / "constants").mkdir()
        (release / "constants" / "a.toml").write_text(
            '[[constant]]\nname = "x"\nfamily = "b"\ndevice = "two"\nvalue = 2.0\nlow = 0.7\nhigh = 0.9\nunit = "1"\n'
            'basis = "measured"\n'
            'provenance = { source = "runs", retrieved_on = 2026-11-21, checked = "measured" }\n',
            encoding="utf-8",
        )
        found = "\n".join(problems(release))
        for fault in ("unknown family", "unknown device", "2.0 is outside its range 0.7 to 0.9"):
            assert fault in found

    def test_constants_of_one_model_and_of_all_but_none_twice(self, release: Path) -> None:
        row = (
            '[[constant]]\nname = "x"\n{of}value = 0.8\nlow = 0.7\nhigh = 0.9\nunit = "1"\nbasis = "measured"\n'
            'provenance = {{ source = "runs", retrieved_on = 2026-11-21, checked = "measured" }}\n'
        )
        of_all, of_one = row.format(of=""), row.format(of='llms = ["tiny"]\n')
        (release / "constants").mkdir()
        (release / "constants" / "a.toml").write_text(of_all + of_one, encoding="utf-8")
        unknown = "constant x (*, *, *, tiny): unknown llm 'tiny'"
        assert problems(release) == (unknown,)
        (release / "constants" / "a.toml").write_text(of_all + of_one + of_one, encoding="utf-8")
        assert problems(release) == (unknown, "constant x (*, *, *, tiny): stated twice", unknown)


class TestDigest:
    def test_it_is_the_same_for_the_same_files(self, release: Path) -> None:
        assert digest(release) == digest(release) == read_catalog(release).digest

    def test_any_changed_figure_changes_it(self, release: Path) -> None:
        before = digest(release)
        replace(release, "prices/cloud.csv", "20.000000", "20.000001")
        assert digest(release) != before

    def test_a_renamed_file_changes_it(self, release: Path) -> None:
        before = digest(release)
        (release / "devices/all.toml").rename(release / "devices/some.toml")
        assert digest(release) != before

    def test_line_ends_do_not_change_it(self, release: Path) -> None:
        before = digest(release)
        path = release / "offers/cloud.csv"
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert digest(release) == before


def test_the_whole_catalog_reads_in_a_second_of_processor_time() -> None:
    def seconds() -> float:
        started = time.process_time()
        assert isinstance(read_catalog(DEFAULT_ROOT), Catalog)
        return time.process_time() - started

    assert min(seconds() for _ in range(3)) < 1.0
