"""The packages that a project installs: this deployer as a wheel, and every package that it needs, with the hashes of
their files.

The wheel is in the project, so the installation does not depend on a package called deployer in an index.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution

from deployer import DISTRIBUTION, __version__
from deployer.compute.packaging.lock_file import AWS, BUILD, PACKAGES, lock_text
from deployer.compute.packaging.wheel import NAME, build_wheel
from deployer.errors import NotFound

VENDOR = "vendor"
OLD_WHEELS = f"{DISTRIBUTION.replace('-', '_')}-*.whl"  #: wheels of other releases in VENDOR

_INSTALL = """\
#   python -m pip install --requirement requirements-build.txt
#   python -m pip install --no-build-isolation --requirement {name}
"""
_PLAIN = """\
# Deployer, from {vendor}/, and every package that it needs. Only files with these hashes are installed.
{install}\
# After an update of deployer, `deployer init --requirements .` writes requirements*.txt and {vendor}/ again.
# The project `deployer` on the public package index is another one. Once your index has {distribution} {version},
# the line of its wheel can become: {distribution}=={version} --hash=sha256:HASH
--require-hashes
--only-binary :all:
--no-binary pyspark

./{vendor}/{wheel} \\
    --hash=sha256:{digest}
"""
_AWS = """\
# For a lake on S3: the packages of requirements.txt, and AWS's types for the program in stacks/.
{install}\
--require-hashes
--requirement requirements.txt

"""
_BUILD = """\
# Packages that build PySpark, of which the index has only the source. Install them before the other packages.
--require-hashes
--only-binary :all:

"""


def requirement_files() -> Mapping[str, bytes]:
    """Returns the files by their paths in a project. Raises NotFound where deployer is not installed as a package."""
    try:
        distribution(DISTRIBUTION)
    except PackageNotFoundError:
        raise NotFound(
            f"{DISTRIBUTION} is not installed as a package here, so its wheel would lack its dependencies and commands",
            remedy="install it, such as by `python -m pip install FOLDER-OF-ITS-SOURCE`",
        ) from None
    wheel = build_wheel()
    plain = _PLAIN.format(
        vendor=VENDOR,
        install=_INSTALL.format(name="requirements.txt"),
        distribution=DISTRIBUTION,
        version=__version__,
        wheel=NAME,
        digest=hashlib.sha256(wheel).hexdigest(),
    )
    texts = {
        "requirements.txt": plain + lock_text(PACKAGES),
        "requirements-aws.txt": _AWS.format(install=_INSTALL.format(name="requirements-aws.txt")) + lock_text(AWS),
        "requirements-build.txt": _BUILD + lock_text(BUILD),
    }
    return {f"{VENDOR}/{NAME}": wheel, **{name: text.encode() for name, text in texts.items()}}
