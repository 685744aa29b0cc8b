# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Which of the newest batches hold which filter ids, in parts by id, until summaries cover them.

The writer pays for this with every batch: at 500 batches a second with 1,000 ids each it is half a million pairs a
second. So a pair is eight bytes in an array of its part, appended without looking at the others, and sorted once, by
radix, when the part is written as a summary. Who asks for an id runs over its part's array: some thousand pairs.

Batches have numbers that grow by one; the arrays keep their lowest 32 bits, and compare by distance, so that they may
wrap: no more than 2**31 batches are ever without a summary. ``postings.py`` is the same in plain Python, and
``tests/store/journal/test_postings.py`` holds both to the same answers.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memmove, memset

COMPILED = True
PARTS = 64

cdef enum:
    _PARTS = 64
    _RADIX_BITS = 9
    _RADIX = 512
    _VARINT_MAX = 5

cdef struct Pair:
    uint32_t id
    uint32_t number

cdef struct Part:
    Pair* pairs
    Py_ssize_t count
    Py_ssize_t room


cdef void _sort(Pair* pairs, Pair* spare, Py_ssize_t count) noexcept nogil:
    """By id, keeping the order of numbers. The lowest six bits are the same in a part; three passes take the others."""
    cdef Py_ssize_t counts[_RADIX]
    cdef Py_ssize_t i, at, one
    cdef int turn, shift
    cdef Pair* a = pairs
    cdef Pair* b = spare
    cdef Pair* c
    for turn in range(3):
        shift = 6 + turn * _RADIX_BITS
        memset(counts, 0, sizeof(counts))
        for i in range(count):
            counts[(a[i].id >> shift) & (_RADIX - 1)] += 1
        at = 0
        for i in range(_RADIX):
            one = counts[i]
            counts[i] = at
            at += one
        for i in range(count):
            one = (a[i].id >> shift) & (_RADIX - 1)
            b[counts[one]] = a[i]
            counts[one] += 1
        c = a
        a = b
        b = c
    memcpy(pairs, a, count * sizeof(Pair))  # three turns: the last one ended in the spare


cdef class Postings:
    """Filter ids of batches that no summary covers."""

    cdef readonly Py_ssize_t size  # pairs of a filter id and a batch, over all parts
    cdef Part _parts[_PARTS]
    cdef int64_t _begin[_PARTS]

    def __cinit__(self):
        memset(self._parts, 0, sizeof(self._parts))
        memset(self._begin, 0, sizeof(self._begin))

    def __dealloc__(self):
        cdef int part
        for part in range(_PARTS):
            PyMem_Free(self._parts[part].pairs)

    cpdef add(self, int64_t number, bytes filters):
        """Takes the ids (4 bytes each, big endian) in batch ``number``, which is higher than any before."""
        cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(filters)
        cdef Py_ssize_t ids = PyBytes_GET_SIZE(filters) // 4
        cdef Py_ssize_t i, k
        cdef uint32_t one
        cdef uint32_t low = <uint32_t>number
        cdef Part* part
        for i in range(ids):
            one = (<uint32_t>p[0] << 24) | (<uint32_t>p[1] << 16) | (<uint32_t>p[2] << 8) | p[3]
            p += 4
            if number < self._begin[one % _PARTS]:
                continue
            part = &self._parts[one % _PARTS]
            # An id counts once per batch; those of this batch are the last ones in the array.
            k = part.count
            while k > 0 and part.pairs[k - 1].number == low and part.pairs[k - 1].id != one:
                k -= 1
            if k > 0 and part.pairs[k - 1].number == low:
                continue
            if part.count == part.room:
                self._grow(part)
            part.pairs[part.count].id = one
            part.pairs[part.count].number = low
            part.count += 1
            self.size += 1

    cdef int _grow(self, Part* part) except -1:
        cdef Py_ssize_t room = part.room * 2 if part.room else 64
        cdef Pair* pairs = <Pair*>PyMem_Realloc(part.pairs, room * sizeof(Pair))
        if pairs is NULL:
            raise MemoryError
        part.pairs = pairs
        part.room = room
        return 0

    cpdef begin(self, int part, int64_t number):
        """Forgets what a part has about batches below ``number``, and takes no more of it."""
        cdef Part* one = &self._parts[self._checked(part)]
        cdef Py_ssize_t gone = _below(one, <uint32_t>number)
        self._begin[part] = number
        if gone:
            one.count -= gone
            self.size -= gone
            memmove(one.pairs, one.pairs + gone, one.count * sizeof(Pair))
        if one.room > 4096 and one.count < one.room // 4:
            one.room = one.room // 2
            one.pairs = <Pair*>PyMem_Realloc(one.pairs, one.room * sizeof(Pair))

    cpdef Py_ssize_t pairs(self, int part):
        """How much a part has."""
        return self._parts[self._checked(part)].count

    cpdef list find(self, uint32_t filter_id, int64_t first, int64_t last):
        """The batches from ``first`` to before ``last`` that hold an id."""
        cdef Part* part = &self._parts[filter_id % _PARTS]
        cdef uint32_t base = <uint32_t>first
        cdef list found = []
        cdef Py_ssize_t i
        cdef int64_t number
        for i in range(_below(part, base), part.count):
            if part.pairs[i].id == filter_id:
                number = first + <uint32_t>(part.pairs[i].number - base)
                if number >= last:
                    break
                found.append(number)
        return found

    cpdef tuple encode(self, int part, int64_t first, int64_t last, list also):
        """A part as its summary has it, for batches from ``first`` to before ``last``.

        Returns the batches that it names (and those in ``also``), in order; the ids, sorted; where each one's list
        ends; and the lists: places in the first of these, each as the distance from the one before.
        """
        cdef Part* one = &self._parts[self._checked(part)]
        cdef Py_ssize_t start = _below(one, <uint32_t>first)
        cdef Py_ssize_t count = _below(one, <uint32_t>last) - start
        cdef Py_ssize_t span = <Py_ssize_t>(last - first)
        cdef Py_ssize_t i, place
        cdef list named = []
        cdef int64_t number
        if count < 0 or span < 0:
            raise ValueError("the range of a summary ends before it begins")
        cdef Pair* pairs = <Pair*>PyMem_Malloc((2 * count + 1) * sizeof(Pair))
        cdef uint32_t* places = <uint32_t*>PyMem_Malloc((span + 1) * sizeof(uint32_t))
        try:
            if pairs is NULL or places is NULL:
                raise MemoryError
            memset(places, 0, (span + 1) * sizeof(uint32_t))
            if count:
                memcpy(pairs, one.pairs + start, count * sizeof(Pair))
            for i in range(count):
                pairs[i].number -= <uint32_t>first
                if pairs[i].number >= span:
                    raise ValueError("a number outside of the range of its summary")
                places[pairs[i].number] = 1
            for number in also:
                if not first <= number < last:
                    raise ValueError("a number outside of the range of its summary")
                places[number - first] = 1
            place = 0
            for i in range(span):
                if places[i]:
                    places[i] = <uint32_t>place
                    place += 1
                    named.append(first + i)
            _sort(pairs, pairs + count, count)
            return named, *_write(pairs, count, places)
        finally:
            PyMem_Free(pairs)
            PyMem_Free(places)

    cdef int _checked(self, int part) except -1:
        if not 0 <= part < _PARTS:
            raise ValueError("no such part")
        return part


cdef Py_ssize_t _below(Part* part, uint32_t number) noexcept nogil:
    """How many pairs are of batches below a number; they are in the order of their numbers."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = part.count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if <int32_t>(part.pairs[middle].number - number) < 0:
            low = middle + 1
        else:
            high = middle
    return low


cdef tuple _write(Pair* pairs, Py_ssize_t count, uint32_t* places):
    cdef Py_ssize_t distinct = 0
    cdef Py_ssize_t i, k
    for i in range(count):
        if i == 0 or pairs[i].id != pairs[i - 1].id:
            distinct += 1
    cdef bytes ids = PyBytes_FromStringAndSize(NULL, 4 * distinct)
    cdef bytes ends = PyBytes_FromStringAndSize(NULL, 4 * distinct)
    cdef uint8_t* lists = <uint8_t*>PyMem_Malloc(count * _VARINT_MAX + 1)
    if lists is NULL:
        raise MemoryError
    cdef uint8_t* id_at = <uint8_t*>PyBytes_AS_STRING(ids)
    cdef uint8_t* end_at = <uint8_t*>PyBytes_AS_STRING(ends)
    cdef Py_ssize_t size = 0
    cdef uint32_t before, distance
    try:
        i = 0
        while i < count:
            k = i
            before = 0
            while k < count and pairs[k].id == pairs[i].id:
                distance = places[pairs[k].number] - before
                before = places[pairs[k].number]
                while distance >= 0x80:
                    lists[size] = <uint8_t>((distance & 0x7F) | 0x80)
                    size += 1
                    distance >>= 7
                lists[size] = <uint8_t>distance
                size += 1
                k += 1
            _put32(id_at, pairs[i].id)
            _put32(end_at, <uint32_t>size)
            id_at += 4
            end_at += 4
            i = k
        return ids, ends, PyBytes_FromStringAndSize(<char*>lists, size)
    finally:
        PyMem_Free(lists)


cdef inline void _put32(uint8_t* out, uint32_t value) noexcept nogil:
    out[0] = <uint8_t>value
    out[1] = <uint8_t>(value >> 8)
    out[2] = <uint8_t>(value >> 16)
    out[3] = <uint8_t>(value >> 24)


cpdef list read_list(bytes data, Py_ssize_t start, Py_ssize_t end):
    """The places in the list at ``data[start:end]``."""
    cdef list found = []
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef const uint8_t* p = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef uint32_t place = 0
    cdef uint32_t value = 0
    cdef int shift = 0
    if start < 0:
        start = 0
    if end > size:
        end = size
    while start < end:
        value |= <uint32_t>(p[start] & 0x7F) << (shift & 31)
        if p[start] >= 0x80:
            shift += 7
        else:
            place += value
            found.append(place)
            value = 0
            shift = 0
        start += 1
    return found
