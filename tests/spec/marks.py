"""The marks by which a test names the statements that it proves, and the versions that it runs with."""

from __future__ import annotations

import pytest

mqtt5 = pytest.mark.mqtt5  # statements of MQTT 5.0
mqtt311 = pytest.mark.mqtt311  # statements of MQTT 3.1.1

both = pytest.mark.parametrize("version", [4, 5], ids=["3.1.1", "5.0"])
every_version = pytest.mark.parametrize("version", [3, 4, 5], ids=["3.1", "3.1.1", "5.0"])
every_qos = pytest.mark.parametrize("qos", [0, 1, 2], ids=["qos0", "qos1", "qos2"])
acknowledged_qos = pytest.mark.parametrize("qos", [1, 2], ids=["qos1", "qos2"])
