"""Train on scikit-learn's digits with PyTorch's DDP, over any number of replicas."""

import argparse
import hashlib
import os
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200, help="steps of training")
    parser.add_argument("--pace", type=float, default=0.0, help="least seconds a step takes")
    parser.add_argument("--batch", type=int, default=64, help="images a step, over all replicas")
    parser.add_argument("--seed", type=int, default=7)
    told = parser.parse_args()

    torch.set_num_threads(1)
    os.environ.setdefault("RANK", "0")
    os.environ.setdefault("WORLD_SIZE", "1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo", init_method="env://")
    rank, world = dist.get_rank(), dist.get_world_size()

    digits = load_digits()
    images = torch.tensor(digits.data / 16.0, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    torch.manual_seed(told.seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.5)
    chance = torch.Generator().manual_seed(told.seed)
    print(f"rank {rank} of {world}: {told.steps} steps", flush=True)

    for step in range(1, told.steps + 1):
        began = time.monotonic()
        chosen = torch.randint(0, len(images), (told.batch,), generator=chance)[rank::world]
        loss = torch.nn.functional.cross_entropy(wrapped(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.6f} at {time.time():.3f}", flush=True)
        time.sleep(max(0.0, told.pace - (time.monotonic() - began)))

    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    if rank == 0:
        torch.save(model.state_dict(), "weights.pt")
    print(f"weights sha256 {hashlib.sha256(weights).hexdigest()}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
