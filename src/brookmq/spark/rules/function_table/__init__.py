"""The functions of rules, a module for each group; `brookmq.spark.rules.functions` has them all."""
