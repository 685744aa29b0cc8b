cimport cython

@cython.locals(out=bytearray)
cpdef bytes variable_length(Py_ssize_t value)
cpdef bytes identifier_properties(tuple identifiers)
cpdef bytes expiry_property(long seconds)
cpdef bytes alias_property(int alias)
@cython.locals(parts=list, size=Py_ssize_t, length=bytes)
cpdef bytes encode_publish(int head, bytes topic, int packet_id, bint version5, bytes properties, bytes payload)
