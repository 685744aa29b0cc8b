"""BrookMQ in Spark: the journal as a source, MQTT as a sink."""
