"""The tests. A package, because a dependency installs one of the same name that would be found instead."""
