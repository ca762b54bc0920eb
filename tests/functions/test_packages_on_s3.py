"""Packages of functions in a bucket: moto's, or what `--s3-endpoint` names."""

from __future__ import annotations

import pytest

from deployer.datasets.storage.function_packages import package_path, remove_packages, stored_packages
from deployer.datasets.storage.options import objects_at
from deployer.errors import Corrupt, NotFound
from deployer.functions import udf
from deployer.functions.packages.stored import function_info, load_function, save_function
from deployer.platform.isolation.trusted_functions import TrustedFunctions


def test_packages_are_stored_in_a_bucket(on_s3: str) -> None:
    by = 3
    scaled = udf(data_type="int64")(lambda a: a * by)
    package_hash = save_function(on_s3, scaled, "ana")
    assert save_function(on_s3, scaled, "ben") == package_hash
    assert function_info(on_s3, package_hash)[1] == "ana"
    assert load_function(on_s3, package_hash, TrustedFunctions())(5) == 15
    assert list(stored_packages(on_s3)) == [package_hash]
    objects_at(on_s3).put(package_path(package_hash), b"DST")
    with pytest.raises(Corrupt, match=f"function {package_hash}"):
        function_info(on_s3, package_hash)
    remove_packages(on_s3, [package_hash])
    assert not stored_packages(on_s3)
    with pytest.raises(NotFound, match="not stored"):
        function_info(on_s3, package_hash)
