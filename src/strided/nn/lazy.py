"""Names that are loaded from their file when first used."""
import importlib

from ..refused import absent


def lazy_names(package, namespace, families):
    """`__getattr__`, `__dir__` and the list of names for a module whose names live in files of `package`.

    families: file name → the names it defines, separated by spaces. A name once found is kept in `namespace`, the module's globals.
    """
    home = {name: family for family, names in families.items() for name in names.split()}

    def find(name):
        if name in home:
            value = getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        elif name in families and package == namespace["__name__"]:  # the file itself, as in nn.modules.linear
            value = importlib.import_module(f"{package}.{name}")
        else:
            raise absent(f"torch.{namespace['__name__'].partition('.')[2]}.{name}")
        namespace[name] = value
        return value

    def names():
        return sorted({*namespace, *home})

    return find, names, list(home)
