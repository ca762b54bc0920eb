"""Processes that run code of a project: its Pulumi program and its rules in Python.

The process that plans, evaluates policies and prints never imports or executes such code.

It starts a separate process and receives only data, which it checks: protobuf messages of Pulumi's protocol, and JSON.
A project's code still runs with the rights of the user. It has no access to the command's streams and terminal, its
memory, other open files, and the credentials in its environment that only deployer itself uses (`surroundings`).

Functions that tables name are the exception: a search imports one in its own process, and only when its caller allows
the name (`trusted_functions`). So do jobs with functions of computed columns, by name or packaged in the lake.

Every layer above `deployer.platform` may import it.
"""
