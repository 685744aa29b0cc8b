"""BrookMQ side by side with Mosquitto: the same loads, in the same run, on the same machine."""
