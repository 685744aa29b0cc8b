"""The pipeline: all enabled rules and declared tables of a node, as streams in one Spark application.

`documents` (what the node keeps) → `wanted` (which queries there should be) → `supervising` (when each is started,
stopped and tried again) → `query` (one of them in Spark) → `batches` (its rows into its actions, once each)

`running` holds them together; `progress`, `reporting` and `display` tell how they get on. What decides (`wanted`,
`supervising`) knows neither Spark nor a clock.
"""
