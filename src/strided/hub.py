"""`torch.hub` without its downloads: weights and repositories that are already in its folder are read, and what is not there is refused with the path it belongs at.

Nothing goes over the network.
"""
from __future__ import annotations

import builtins
import os
import re
import sys
from typing import Any
from urllib.parse import urlparse  # timm takes it from here

from .io import load as _load_file
from .refused import missing

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # "resnet18-bf5a0.pth": what its name says of a file's hash
_DIRECTORY: str | None = None


def _get_torch_home() -> str:
    """PyTorch's cache folder: TORCH_HOME, or torch under XDG_CACHE_HOME (~/.cache)."""
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")))


def get_dir() -> str:
    """The folder of weights ("checkpoints" in it) and repositories: what `set_dir` chose, else "hub" in PyTorch's cache folder."""
    return _DIRECTORY if _DIRECTORY is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Looks for weights and repositories in the folder d from now on."""
    global _DIRECTORY
    _DIRECTORY = os.path.expanduser(d)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """`torch.load` of the file that PyTorch keeps of this URL: its last part, or `file_name`, in `model_dir` ("checkpoints" in `get_dir()`).

    Raises NotImplementedError with that path if it is not there: nothing is downloaded. progress and check_hash are of the download.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise NotImplementedError(f"torch.hub: nothing is downloaded here; put what {url} gives at {path}, and it is read from there")
    return _load_file(path, map_location=map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Refused: nothing is downloaded here."""
    raise NotImplementedError(f"torch.hub: nothing is downloaded here; put what {url} gives at {dst}")


def _entry_points(repo: str, source: str) -> dict[str, Any]:
    """What hubconf.py of a repository in a folder defines. The code runs as the script's own, with that folder in front of sys.path."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise NotImplementedError(f'torch.hub: nothing is downloaded here; clone {repo} and give its folder with source="local"')
    path = os.path.join(repo, "hubconf.py")
    with open(path) as file:
        text = file.read()
    names: dict[str, Any] = {"__name__": "hubconf", "__file__": path}
    sys.path.insert(0, repo)
    try:
        exec(compile(text, path, "exec"), names)
    finally:
        sys.path.remove(repo)
    absent = [name for name in names.get("dependencies", ()) if not _present(name)]
    if absent:
        raise RuntimeError(f"Missing dependencies: {', '.join(absent)}")
    return names


def _present(name: str) -> bool:
    from importlib.util import find_spec

    return name in sys.modules or name == "torch" or find_spec(name) is not None


def _entry(repo: str, name: str, source: str) -> Any:
    found = _entry_points(repo, source).get(name)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the function `model` of hubconf.py returns for the arguments. source must be "local", and repo_or_dir a folder: NotImplementedError otherwise."""
    return _entry(repo_or_dir, model, source)(*args, **kwargs)


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, verbose: bool = True, source: str = "github"
) -> builtins.list[str]:
    """The names of the functions in hubconf.py of a folder, with source="local"."""
    return [name for name, value in _entry_points(github, source).items() if callable(value) and not name.startswith("_")]


def help(github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None, source: str = "github") -> str | None:
    """The docstring of a function in hubconf.py of a folder, with source="local"."""
    return _entry(github, model, source).__doc__


load_url = load_state_dict_from_url  # its name in torch.utils.model_zoo


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # packages take the progress bar from here
        from tqdm.auto import tqdm  # type: ignore[import-untyped]

        return tqdm
    return _absent(name)


_absent = missing("torch.hub")
