"""Headers of HTTP/2, compressed by HPACK (RFC 7541)."""

from __future__ import annotations

from collections.abc import Iterable

from hpack import Decoder, Encoder, HPACKError, NeverIndexedHeaderTuple, OversizedHeaderListError

from deployer.catalog.serving.http2.frames import Code, ConnectionFault

Header = tuple[bytes, bytes]

LARGEST = 1 << 16  #: most bytes of the headers of a request, both compressed and decompressed


class HeaderDecoder:
    """Decompresses the headers of one client, in the order in which they arrive: later ones refer to earlier ones."""

    def __init__(self) -> None:
        self._decoder = Decoder(max_header_list_size=LARGEST)

    def decoded(self, block: bytes) -> list[Header]:
        """Returns the headers of a request. Raises ConnectionFault for bytes that are not headers, and for headers of
        more than `LARGEST` bytes."""
        try:
            return [(bytes(name), bytes(value)) for name, value in self._decoder.decode(block, raw=True)]
        except OversizedHeaderListError as error:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "the headers are too large") from error
        except HPACKError as error:
            raise ConnectionFault(Code.COMPRESSION_ERROR, "the headers cannot be decompressed") from error


def encoded(headers: Iterable[tuple[str, str]]) -> bytes:
    """Returns headers in a form that does not depend on earlier headers, and that later headers do not refer to."""
    return Encoder().encode([NeverIndexedHeaderTuple(name, value) for name, value in headers], huffman=False)
