"""Operations: the HTTP API, metrics, the overview page and ``brookmq ctl``.

There is one HTTP server per node (:mod:`brookmq.ops.server`). A new resource is a module with a router under
:mod:`brookmq.ops.api`, never a second server. What is shown comes through :mod:`brookmq.ops.view`; nothing here knows
the broker.
"""
