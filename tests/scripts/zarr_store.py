#!/usr/bin/env python3
"""Writes tests/data/zarr_store.zip: a store as xarray and zarr-python write it, by ArviZ's names. Needs xarray and zarr 3.

Draws are numbers that a test knows: mu is chain + draw / 100, theta[i] is mu + 10 * i."""
import pathlib
import tempfile
import zipfile

import numpy as np
import xarray as xr

chains, draws = 2, 12
mu = np.arange(chains)[:, None] + np.arange(draws)[None, :] / 100
theta = mu[..., None] + 10 * np.arange(3)
axes = ("chain", "draw")
coords = {"chain": [3, 7], "draw": np.arange(draws)}
posterior = xr.Dataset(
    {"mu": (axes, mu), "theta": ((*axes, "school"), theta), "n": (axes, (100 * mu).round().astype("int32"))},
    coords=coords | {"school": ["a", "b", "c"]},
)
stats = xr.Dataset(
    {
        "lp": (axes, -mu),
        "diverging": (axes, np.zeros((chains, draws), bool)),
        "tree_depth": (axes, np.full((chains, draws), 2) + (mu > 1.1)),
        "reached_max_treedepth": (axes, mu > 1.1),
        "n_steps": (axes, np.full((chains, draws), 3, "uint8")),
        "step_size": (axes, np.full((chains, draws), 0.5, "float32")),
        "energy": (axes, mu.astype(">f8")),
    },
    coords=coords,
)
observed = xr.Dataset({"y": (("school",), [28.0, 8.0, -3.0])}, coords={"school": ["a", "b", "c"]})
tree = xr.DataTree.from_dict({"/posterior": posterior, "/sample_stats": stats, "/observed_data": observed})
tree["posterior"].attrs |= {"inference_library": "other", "inference_library_version": "1.2", "tuning_steps": 50}
into = pathlib.Path(__file__).parents[1] / "data" / "zarr_store.zip"
with tempfile.TemporaryDirectory() as folder:
    chunks = {name: {"chunks": (1, 5)} for name in ("mu", "n")} | {"theta": {"chunks": (2, 5, 2)}}
    tree.to_zarr(folder, zarr_format=3, encoding={"/posterior": chunks})
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as out:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if path.is_file():
                out.writestr(zipfile.ZipInfo(str(path.relative_to(folder)), (2020, 1, 1, 0, 0, 0)), path.read_bytes(), zipfile.ZIP_DEFLATED)
