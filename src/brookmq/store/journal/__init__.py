"""The journal: MQTT messages that somebody absent, or a capture filter, wants kept.

Written as *groups* (messages that came in together, as the bytes that they came in) gathered in *batches* by the
*shard* that their topic hashes to. Nothing in here knows sockets or futures: bodies go out through a function, answers
come back through a call, and time is given. So the whole of it runs in a simulation with a log in memory.
"""
