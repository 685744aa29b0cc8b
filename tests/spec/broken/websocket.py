"""Chapter 6: text frames are taken like binary ones."""

from brookmq.edge.websocket_frames import FrameDecoder

FAILS = "test_6_websocket.py::test_a_text_frame_ends_the_connection[5.0]"

_read_header = FrameDecoder._read_header


def read_header(self: FrameDecoder, data: bytes, position: int, size: int) -> int:
    if position < size and data[position] & 0x0F == 1:
        data = data[:position] + bytes([data[position] ^ 3]) + data[position + 1 :]
    return _read_header(self, data, position, size)


FrameDecoder._read_header = read_header  # type: ignore[method-assign]
