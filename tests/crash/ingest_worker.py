"""A process that runs INGEST on a table once: `ingest_worker.py ROOT FILES OPTION=VALUE…`; prints what it loaded."""

from __future__ import annotations

import sys

from deployer.services.kinds.ingest import ingest_files
from deployer.specs.serialized.service_options import options_from_text


def main(root: str, files: str, options: list[str]) -> None:
    texts = dict(option.split("=", 1) for option in options)
    done = ingest_files(root, "flights", options_from_text("INGEST", {"files": files, **texts}))
    print(done.files, done.set_aside, done.changed, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
