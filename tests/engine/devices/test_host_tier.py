"""Tests of the host tier: a budget of memory, files beyond it, and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from engine.devices.host_tier import HostTier, open_block
from engine.devices.weights import Images
from engine.errors import StoreError
from engine.spec import Bucket, ModelSpec, Sample

KIB = 1024


def block(number: int, size: int = 8 * KIB) -> torch.Tensor:
    generator = torch.Generator().manual_seed(number)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, generator=generator)


def test_the_least_recently_used_goes_to_a_file_and_reads_the_same(tmp_path: Path):
    tier = HostTier(tmp_path)
    tier.set_budget(16 * KIB)
    for number, name in enumerate("ab"):
        tier.put(name, block(number))
    assert tier.changes() == []
    tier.block("a")
    tier.put("c", block(2))
    (change,) = tier.changes()
    assert (change.model, change.is_on_disk, change.size_bytes) == ("b", True, 8 * KIB)
    assert tier.host_bytes == 16 * KIB
    assert torch.equal(tier.block("b"), block(1))
    tier.close()
    assert list(tmp_path.iterdir()) == []


def test_a_model_larger_than_the_whole_budget_lives_in_a_file(tmp_path: Path):
    tier = HostTier(tmp_path)
    tier.set_budget(4 * KIB)
    tier.put("large", block(0))
    assert tier.is_on_disk("large")
    assert torch.equal(tier.block("large"), block(0))


def test_a_larger_budget_brings_back_what_was_used_last(tmp_path: Path):
    tier = HostTier(tmp_path)
    for number, name in enumerate("abc"):
        tier.put(name, block(number))
    tier.set_budget(0)
    assert [c.model for c in tier.changes()] == ["a", "b", "c"]
    tier.block("a")
    tier.set_budget(8 * KIB)
    assert [(c.model, c.is_on_disk) for c in tier.changes()] == [("a", False)]
    tier.set_budget(None)
    assert tier.host_bytes == 24 * KIB


def test_a_block_that_was_handed_out_stays_valid_when_its_model_moves(tmp_path: Path):
    tier = HostTier(tmp_path)
    tier.put("a", block(0))
    kept = tier.block("a")
    tier.set_budget(0)
    mapped = tier.block("a")
    tier.set_budget(None)
    tier.close()
    assert torch.equal(kept, block(0))
    assert torch.equal(mapped, block(0))


def test_what_cannot_be_written_stays_in_memory_and_says_why(tmp_path: Path):
    no_folder = tmp_path / "file"
    no_folder.write_text("not a folder")
    tier = HostTier(no_folder / "below")
    tier.put("a", block(0))
    tier.set_budget(0)
    (change,) = tier.changes()
    assert not change.is_on_disk
    assert "Error" in change.trouble
    assert torch.equal(tier.block("a"), block(0))


def test_files_of_a_process_that_was_killed_are_removed(tmp_path: Path):
    left = tmp_path / "millpond-host-999999999-abc"
    left.mkdir()
    (left / "x.safetensors").write_bytes(b"old")
    tier = HostTier(tmp_path)
    tier.put("a", block(0))
    tier.set_budget(0)
    assert not left.exists()


def test_a_file_that_was_cut_short_is_refused_in_a_sentence(tmp_path: Path):
    tier = HostTier(tmp_path)
    tier.put("a", block(0))
    tier.set_budget(0)
    (path,) = tmp_path.glob("*/*.safetensors")
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError, match="cannot be read as packed weights"):
        open_block(broken)


def test_a_model_whose_file_is_gone_is_built_again(tmp_path: Path):
    def build() -> nn.Module:
        torch.manual_seed(1)
        return nn.Linear(32, 32)

    spec = ModelSpec("a", build, (Bucket((32,)),), lambda _: Sample(torch.zeros(1, 32)))
    images = Images(tmp_path)
    images.add(spec, ["cpu"])
    first = images.block("a").clone()
    images.set_host_budget(0)
    (path,) = tmp_path.glob("*/*.safetensors")
    path.unlink()
    assert torch.equal(images.block("a"), first)
    images.close()


STEPS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcd"), st.integers(1, 9)),
    st.tuples(st.just("read"), st.sampled_from("abcd"), st.just(0)),
    st.tuples(st.just("budget"), st.just(""), st.integers(0, 20)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_whatever_happens_the_budget_holds_and_every_model_reads_as_it_was_put(
    steps: list[tuple[str, str, int]],
):
    tier = HostTier()
    wanted: dict[str, torch.Tensor] = {}
    budget: int | None = None
    for serial, (what, name, size) in enumerate(steps):
        if what == "put":
            wanted[name] = block(serial, size * KIB)
            tier.put(name, wanted[name])
        elif what == "read" and name in wanted:
            assert torch.equal(tier.block(name), wanted[name])
        elif what == "budget":
            budget = size * KIB
            tier.set_budget(budget)
        assert budget is None or tier.host_bytes <= budget
        in_memory = sum(b.nbytes for n, b in wanted.items() if not tier.is_on_disk(n))
        assert in_memory == tier.host_bytes
    assert all(torch.equal(tier.block(name), found) for name, found in wanted.items())
    tier.close()
