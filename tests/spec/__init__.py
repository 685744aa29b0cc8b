"""The specification suite: each file proves one chapter of MQTT 5.0 and 3.1.1 over a socket against a running node.

`statements.toml` has every normative statement that concerns a server, with the tests that prove it. A test says which
ones by its marks: `@mqtt5("3.1.2-24")` for the numbering of 5.0, `@mqtt311(…)` for that of 3.1.1.
"""
