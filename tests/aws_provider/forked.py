"""The executable in place of the provider: asks for one to be forked and stands for it. Imports next to nothing."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as asked:
    asked.connect(os.environ["TESTS_AWS_PROVIDERS"])
    wanted = {"arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109 (pathlib takes as long as all the rest)
    socket.send_fds(asked, [json.dumps(wanted).encode()], [1, 2])
    os.close(1)  # what reads them sees the provider's end, and not this one's
    os.close(2)
    asked.recv(1)
sys.exit(1)
