cimport cython
from libc.stdint cimport int64_t

cdef int64_t STRING_BYTES_MAX, VARINT_MAX
cdef tuple _VARINT_1


cpdef check_text(bytes data, str field)


@cython.final
@cython.freelist(8)
cdef class Reader:
    cdef readonly bytes data
    cdef public Py_ssize_t position
    cdef readonly Py_ssize_t end

    @cython.locals(position=Py_ssize_t)
    cpdef int uint8(self, str field) except -1

    @cython.locals(position=Py_ssize_t)
    cpdef int uint16(self, str field) except -1

    @cython.locals(high=int64_t)
    cpdef int64_t uint32(self, str field) except -1

    @cython.locals(value=cython.int, shift=cython.int, byte=cython.int)
    cpdef int varint(self, str field) except -1

    @cython.locals(size=Py_ssize_t, start=Py_ssize_t)
    cpdef Py_ssize_t skip_sized(self, str field) except -1

    @cython.locals(start=Py_ssize_t)
    cpdef bytes binary(self, str field)

    @cython.locals(start=Py_ssize_t, text=str)
    cpdef str string(self, str field)

    @cython.locals(size=Py_ssize_t)
    cpdef Py_ssize_t properties_end(self) except -1

    @cython.locals(start=Py_ssize_t)
    cpdef bytes rest(self)

    cpdef finish(self)


cpdef bytes varint(int64_t value)
cpdef put_uint16(bytearray out, int64_t value)
cpdef put_uint32(bytearray out, int64_t value)
@cython.locals(size=Py_ssize_t)
cpdef put_binary(bytearray out, bytes data)
cpdef put_string(bytearray out, str text)
