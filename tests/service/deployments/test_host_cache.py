"""Host memory under the cache of prefixes, as engines are told of it."""

import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from service.deployments import trim_kv_cache
from service.deployments.disk_cache import TRIMMER, trimmer
from service.deployments.generate import generate
from service.deployments.refusals import TargetCannotExpressError
from tests.service.deployments.plans import AWS, line, plan, workload


def words_of(engine: str, gib: float, disk_gib: float = 0.0) -> list[str]:
    settings = {"name": engine, "host_cache_gib": gib, "disk_cache_gib": disk_gib}
    one = line("chat", AWS, engine=engine, engine_settings=settings, layout={"tensor_parallel": 2})
    found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), engine, None)
    scripts = [file.content for file in found.files if "\nexec " in file.content]
    return shlex.split(scripts[0].split("\nexec ")[1])


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ("vllm", ["--kv-offloading-backend", "native", "--kv-offloading-size", "128"]),
        ("sglang", ["--enable-hierarchical-cache", "--hicache-size", "68"]),
    ],
)
def test_engines_are_told(engine: str, expected: list[str]) -> None:
    """vLLM of all ranks together in GiB, SGLang of each in GB."""
    words = words_of(engine, 64)
    start = words.index(expected[0])
    assert words[start : start + len(expected)] == expected
    assert expected[0] not in words_of(engine, 0)


def test_vllm_is_told_of_a_disk_under_it() -> None:
    """Host memory of both ranks in bytes, replies kept too, blocks in files of a folder; without a bound of its own."""
    words = words_of("vllm", 64, 500)
    told = json.loads(words[words.index("--kv-transfer-config") + 1])
    assert told["kv_connector"] == "OffloadingConnector"
    extra = told["kv_connector_extra_config"]
    assert extra["cpu_bytes_to_use"] == 2 * 64 * 2**30
    assert extra["offload_prompt_only"] is False
    assert [tier["type"] for tier in extra["secondary_tiers"]] == ["fs"]
    assert "--kv-offloading-backend" not in words


def test_sglang_is_told_of_a_disk_under_it() -> None:
    words = words_of("sglang", 64, 500)
    start = words.index("--hicache-storage-backend")
    assert words[start + 1] == "file"
    assert json.loads(words[start + 3]) == {"max_size": 500 * 2**30}


@pytest.mark.parametrize("target", ["compose", "kubernetes"])
def test_containers_reach_the_local_disks(target: str) -> None:
    settings = {"name": "vllm", "host_cache_gib": 64, "disk_cache_gib": 500}
    one = line("chat", AWS, engine="vllm", engine_settings=settings, layout={"tensor_parallel": 2})
    found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), target, None)
    written = "\n".join(file.content for file in found.files)
    assert "/mnt/kv-cache" in written
    assert all(list(yaml.safe_load_all(file.content)) for file in found.files if file.path.endswith(".yaml"))


@pytest.mark.parametrize("target", ["vllm", "compose", "kubernetes"])
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_what_vllm_writes_is_bounded_for_all_devices_of_a_machine(target: str, engine: str) -> None:
    """By a helper of the files; SGLang bounds its own."""
    settings = {"name": engine, "host_cache_gib": 64, "disk_cache_gib": 500}
    one = line("chat", AWS, engine=engine, engine_settings=settings, layout={"tensor_parallel": 2})
    if target == "vllm" and engine == "sglang":
        target = "sglang"
    made = plan([workload("chat", "llama-3.1-70b")], [one])
    found = generate(made, target, None)
    files = {file.path: file.content for file in found.files}
    written = "\n".join(text for path, text in files.items() if path != TRIMMER)
    most = str(500 * 2**30 * made.kinds[0].machine.devices)
    assert (most in written) == (engine == "vllm")
    assert (TRIMMER in files) == (engine == "vllm" and target != "kubernetes")
    if target == "kubernetes" and engine == "vllm":
        pods = next(d for d in yaml.safe_load_all(written) if d["kind"] == "Deployment")["spec"]["template"]["spec"]
        command = pods["containers"][1]["command"]
        assert command[2].replace("$$", "$") == trimmer()


class TestTrimming:
    def write(self, folder: Path, sizes: list[int]) -> list[Path]:
        """Files used one after the other, in folders of their own."""
        paths = []
        for place, size in enumerate(sizes):
            path = folder / str(place % 3) / f"{place}.bin"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x" * size)
            os.utime(path, (1000 + place, 500))
            paths.append(path)
        return paths

    def test_nothing_goes_while_there_is_room(self, tmp_path: Path) -> None:
        paths = self.write(tmp_path, [10] * 10)
        assert trim_kv_cache.trim(str(tmp_path), 100) == 0
        assert all(path.exists() for path in paths)

    @pytest.mark.parametrize("seed", range(20))
    def test_what_was_used_longest_ago_goes_first(self, tmp_path: Path, seed: int) -> None:
        rng = random.Random(seed)
        paths = self.write(tmp_path, [rng.randint(1, 50) for _ in range(30)])
        read = rng.sample(range(30), 5)
        for place, path in enumerate(paths):
            os.utime(path, (2000 if place in read else 1000 + place, 500))
        total = sum(path.stat().st_size for path in paths)
        most = rng.randint(1, total - 1)
        deleted = trim_kv_cache.trim(str(tmp_path), most)
        left = [place for place in range(30) if paths[place].exists()]
        assert total - deleted == sum(paths[place].stat().st_size for place in left) <= most
        gone = set(range(30)) - set(left)
        order = sorted(range(30), key=lambda place: (place in read, place))
        unread = [place for place in order if place not in read]
        assert gone >= set(unread[: min(len(gone), len(unread))])

    def test_links_and_what_disappears_are_left_alone(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        outside = tmp_path / "outside"
        outside.write_bytes(b"x" * 100)
        folder = tmp_path / "cache"
        folder.mkdir()
        (folder / "link").symlink_to(outside)
        (folder / "gone").symlink_to(tmp_path / "nowhere")
        paths = self.write(folder, [10, 10])
        kept = trim_kv_cache.files_of

        def one_disappears(where: str) -> list[tuple[float, int, str]]:
            found = list(kept(where))
            paths[0].unlink(missing_ok=True)
            return found

        monkeypatch.setattr(trim_kv_cache, "files_of", one_disappears)
        assert trim_kv_cache.trim(str(folder), 5) == 20
        assert outside.exists()
        assert not paths[1].exists()

    def test_a_folder_that_is_not_there_yet(self, tmp_path: Path) -> None:
        assert trim_kv_cache.trim(str(tmp_path / "nothing"), 5) == 0

    def test_it_ends_with_the_process_it_is_told_of(self, tmp_path: Path) -> None:
        with subprocess.Popen([sys.executable, "-c", ""]) as over:
            pass
        script = [sys.executable, trim_kv_cache.__file__, "--folder", str(tmp_path), "--bytes", "5", "--every", "0.01"]
        subprocess.run([*script, "--pid", str(over.pid)], check=True, timeout=30)

    def test_the_shells_script_runs(self) -> None:
        """As sh reads it."""
        settings = {"name": "vllm", "host_cache_gib": 64, "disk_cache_gib": 500}
        one = line("chat", AWS, engine="vllm", engine_settings=settings, layout={"tensor_parallel": 2})
        found = generate(plan([workload("chat", "llama-3.1-70b")], [one]), "vllm", None)
        script = next(file.content for file in found.files if file.path.endswith(".sh"))
        assert f'/{TRIMMER}" --folder /mnt/kv-cache' in script
        subprocess.run(["/bin/sh", "-n"], input=script.encode(), check=True)


@pytest.mark.parametrize(("target", "degree"), [("dynamo", 2), ("kserve", 2), ("skypilot", 8), ("dstack", 8)])
def test_others_are_refused(target: str, degree: int) -> None:
    settings = {"name": "vllm", "host_cache_gib": 64, "disk_cache_gib": 500}
    one = line("chat", AWS, engine="vllm", engine_settings=settings, layout={"tensor_parallel": degree})
    with pytest.raises(TargetCannotExpressError, match="local disks"):
        generate(plan([workload("chat", "llama-3.1-70b")], [one]), target, None)
