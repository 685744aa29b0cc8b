"""The load tool ``brookmq bench``: makes MQTT clients by the thousand and says what a broker did with them.

It works against any broker and knows nothing of BrookMQ's own.
"""
