cimport cython
from libc.stdint cimport int64_t

from brookmq.store.journal.fields cimport FieldReader, put_bytes, put_varint
from brookmq.store.journal.group cimport Group, topic_of

cdef Py_ssize_t OVERHEAD_BYTES, FILTER_ID_BYTES
cdef int _COMPRESSED, _EVERYTHING
cdef int _RETAIN, _VERSION5, _PLAIN, _CAPTURED, _KEPT_PUBLISHER, _EXPIRES, _USERNAME, _ORIGIN
cdef int _SAME_PUBLISHER, _SAME_FILTERS, _KNOWN_FLAGS


cdef class Batch:
    cdef readonly int shard
    cdef readonly long long base
    cdef readonly long long end
    cdef readonly long long count
    cdef readonly list groups
    cdef public long long sequence
    cdef readonly bint everything
    cdef readonly double first_time
    cdef readonly double last_time
    cdef readonly Py_ssize_t size
    cdef tuple _filters
    cdef dict _rows

    @cython.locals(rows=dict, found=list)
    cpdef object rows_for(self, frozenset wanted)

@cython.locals(rows=dict, known=dict, number=Py_ssize_t, group=Group, filters=bytes, ids=list, numbers=list)
cdef dict _rows_by_filter(list groups)
@cython.locals(group=Group, parts=list, before=bytes, filters=bytes)
cpdef bytes joined_filters(list groups)
cpdef tuple _unique_ids(list groups)
@cython.locals(content=bytearray, packed=bytes, out=bytearray, flags=cython.int)
cpdef bytes encode_batch(Batch batch)
@cython.locals(out=bytearray, published=list, expiring=list, group=Group, before=Group, flags=cython.int)
cdef bytearray _encode_content(list groups)
@cython.locals(reader=FieldReader, flags=cython.int, batch_flags=cython.int, base=int64_t, count=int64_t, rows=int64_t)
cdef tuple _decode_filters(bytes body)
@cython.locals(reader=FieldReader, flags=cython.int, base=int64_t, count=int64_t, rows=int64_t, size=int64_t)
cdef tuple _decode_head(bytes body)
@cython.locals(
    reader=FieldReader, flags=cython.int, base=int64_t, count=int64_t, rows=int64_t, groups=list, expiring=list,
    group=Group, batch=Batch,
)
cdef Batch _decode(int shard, long long sequence, bytes body)
@cython.locals(
    flags=cython.int, before=Group, group=Group, count=int64_t, client_id=str, origin=bytes, filters=bytes,
    packets=bytes,
)
cdef Group _decode_row(FieldReader reader, list groups, list expiring)
@cython.locals(times=bytes, number=Py_ssize_t, moments=tuple, place=Py_ssize_t, group=Group)
cdef _decode_times(FieldReader reader, list groups, list expiring)
