"""Writes docs/spec.md: `python -m deployer.specs.reference > docs/spec.md`."""

import sys

from deployer.specs.reference.document.document import reference

sys.stdout.write(reference())
