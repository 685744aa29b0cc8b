cdef class Settings:
    cdef public Py_ssize_t packet_size_max
    cdef public double connect_timeout
    cdef public int keep_alive_max
    cdef public double keep_alive_factor
    cdef public int receive_max
    cdef public int topic_alias_max
    cdef public int topic_alias_out_max
    cdef public int qos_max
    cdef public int topic_levels_max
    cdef public int topic_length_max
    cdef public int client_id_length_max
    cdef public bint retain_available
    cdef public bint wildcard_available
    cdef public bint shared_available
    cdef public bint subscription_ids_available
    cdef public bint payload_format_check
    cdef public str response_information
    cdef public str server_reference
    cdef public Py_ssize_t subscriptions_max
    cdef public Py_ssize_t user_properties_max
    cdef public double expiry_max
    cdef public Py_ssize_t session_count_max
    cdef public Py_ssize_t output_bytes_max
    cdef public double patience
    cdef public bint exclusive_enable
    cdef public bint delayed_enable
    cdef public str shared_strategy
    cdef public double store_wait
    cdef public dict shared_strategies

cdef class SessionLimits:
    cdef public int inflight_max
    cdef public Py_ssize_t queue_count_max
    cdef public Py_ssize_t queue_bytes_max
    cdef public bint drop_oldest
