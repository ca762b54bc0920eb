"""HTTP/2 (RFC 9113) as far as a server of gRPC needs it, for answers of many megabytes.

One thread serves a connection: it reads frames, and writes the ready answers as far as the client's windows allow. The
parts of an answer are written unchanged, so that the bytes of recordings are copied only once, into the socket.

`deployer.catalog.serving.grpc_calls` and `deployer.catalog.serving.server` may import it.
"""
