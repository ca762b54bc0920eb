"""HTTP/2 (RFC 9113) as far as a server of gRPC needs it, for answers of many megabytes.

One thread serves a connection: it reads frames, and writes what is ready as far as the client's windows reach. Answers
are parts that are written as they are, so that the bytes of recordings are copied once, into the socket.

`deployer.catalog.serving.grpc_calls` and `deployer.catalog.serving.server` may import it.
"""
