"""So many clients of paho-mqtt with its defaults (1 s doubling to 120 s): herd_paho.py PORT CLIENTS SEED.

Ends when its standard input does.
"""

import os
import sys

import paho.mqtt.client as mqtt

port, clients = int(sys.argv[1]), int(sys.argv[2])
# Versions from 2 on want to know which callbacks one writes; here are none.
version = getattr(mqtt, "CallbackAPIVersion", None)
first = [version.VERSION2] if version else []

for i in range(clients):
    client = mqtt.Client(*first, client_id=f"paho-{i}")
    client.connect_async("127.0.0.1", port)
    client.loop_start()

sys.stdin.read()
os._exit(0)
