"""Reads rows of an X server's screen from the file in memory that Xvfb keeps it in (Xserver(1), -fbdir).

Handed to `python3 -I -S -c` by the host, with the file as its argument, so that no file of it lies in the box. A request
on stdin is two words of four bytes, lowest byte first: first row and number of rows. The answer on stdout is the size of
what follows, such a word too, and the rows packed by zstd (zstd.h 1.5). It stays until stdin ends: a request costs no
process, and only the rows that were asked for are read.
"""
import ctypes
import mmap
import os
import struct
import sys

LEVEL = 100  # ZSTD_c_compressionLevel
word = ctypes.c_size_t
pointer = ctypes.c_void_p


def function(library, name, result, *arguments):
    found = getattr(library, name)
    found.restype, found.argtypes = result, arguments
    return found


def main(path):
    zstd = ctypes.CDLL("libzstd.so.1")
    new_context = function(zstd, "ZSTD_createCCtx", pointer)
    set_parameter = function(zstd, "ZSTD_CCtx_setParameter", word, pointer, ctypes.c_int, ctypes.c_int)
    bound = function(zstd, "ZSTD_compressBound", word, word)
    compress = function(zstd, "ZSTD_compress2", word, pointer, pointer, word, pointer, word)
    is_error = function(zstd, "ZSTD_isError", ctypes.c_uint, word)
    # Python's own mmap gives no address of a mapping that is read only.
    map_file = function(ctypes.CDLL(None), "mmap", pointer, pointer, word, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)

    screen = os.open(path, os.O_RDONLY)
    size = os.fstat(screen).st_size
    # X11/XWDFile.h: words of four bytes, the highest first; header, colours of twelve bytes, rows.
    head = struct.unpack(">25I", os.pread(screen, 100, 0))
    header_bytes, height, row_bytes, colours = head[0], head[5], head[12], head[19]
    start = header_bytes + colours * 12
    at = map_file(None, size, mmap.PROT_READ, mmap.MAP_SHARED, screen, 0)
    if at == pointer(-1).value or start + height * row_bytes > size:
        raise SystemExit("the screen cannot be read")
    context = new_context()
    set_parameter(context, LEVEL, 1)
    room = bound(height * row_bytes)
    out = ctypes.create_string_buffer(4 + room)
    view = memoryview(out).cast("B")
    while True:
        request = sys.stdin.buffer.read(8)
        if len(request) < 8:
            return
        first, rows = struct.unpack("<II", request)
        if first + rows > height:
            raise SystemExit("there is no such row")
        packed = compress(context, ctypes.addressof(out) + 4, room, at + start + first * row_bytes, rows * row_bytes)
        if is_error(packed):
            raise SystemExit("the rows could not be packed")
        struct.pack_into("<I", view, 0, packed)
        sys.stdout.buffer.write(view[: packed + 4])
        sys.stdout.buffer.flush()


main(sys.argv[1])
