cimport cython
from libc.stdint cimport int64_t

cdef int VARINT_BYTES_MAX

cpdef put_varint(bytearray out, int64_t value)
cpdef put_bytes(bytearray out, bytes data)


cdef class FieldReader:
    cdef readonly bytes data
    cdef public Py_ssize_t position
    cdef readonly Py_ssize_t end

    @cython.locals(position=Py_ssize_t)
    cpdef int byte(self) except -1
    @cython.locals(value=int64_t, shift=cython.int, byte=int64_t)
    cpdef int64_t varint(self) except -1
    @cython.locals(position=Py_ssize_t)
    cpdef bytes take(self, int64_t size)
    cpdef int skip(self, int64_t size) except -1
    cpdef bytes sized(self)
    cpdef bytes rest(self)
