"""A Redis or a Kafka: started for as long as it is needed, or one that is there, with messages in JSON."""

import json
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

STREAMS = ["wine.records", "wine.results", "wine.dead", "wine.updates", "wine.deployed", "wine.refused"]


class Redis:
    def __init__(self, address):
        import redis

        host, port = address.rsplit(":", 1)
        self._redis = redis.Redis(host, int(port))

    def send(self, stream, key, message):
        self._redis.xadd(stream, {"key": key, "value": json.dumps(message)})

    def read(self, stream, ended):
        """All messages of a stream from its beginning with their headers, until ended is set."""
        last = "0"
        while not ended.is_set():
            for _, entries in self._redis.xread({stream: last}, count=1000, block=200) or []:
                for last, fields in entries:
                    yield json.loads(fields[b"value"]), {name.decode(): text.decode() for name, text in fields.items()}

    @staticmethod
    def command(folder, port):
        return ["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", ""]


class Kafka:
    def __init__(self, address):
        from confluent_kafka import Producer
        from confluent_kafka.admin import AdminClient, NewTopic

        self._address = address
        admin = AdminClient({"bootstrap.servers": address})
        for made in admin.create_topics([NewTopic(name, 2) for name in STREAMS]).values():
            made.result(30)
        self._producer = Producer({"bootstrap.servers": address, "linger.ms": 5, "log_level": 0})

    def send(self, stream, key, message):
        self._producer.produce(stream, json.dumps(message), key=key)
        self._producer.flush(10)

    def read(self, stream, ended):
        """All committed messages of a topic from its beginning with their headers, until ended is set."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        reader = Consumer({"bootstrap.servers": self._address, "group.id": "wine-reader", "isolation.level": "read_committed"})
        reader.assign([TopicPartition(stream, partition, OFFSET_BEGINNING) for partition in range(2)])
        try:
            while not ended.is_set():
                message = reader.poll(0.2)
                if message is not None and not message.error():
                    yield json.loads(message.value()), {name: text.decode() for name, text in message.headers() or []}
        finally:
            reader.close()

    @staticmethod
    def command(folder, port, jars):
        """Formats a folder, and returns the command of a broker that keeps its data there."""
        here, other = f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}"
        properties = folder / "kafka.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"PLAINTEXT://{here},CONTROLLER://{other}",
            "advertised.listeners": f"PLAINTEXT://{here}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@{other}",
            "log.dirs": folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
        }
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        java = ["java", "-Xmx512m", "-cp", f"{jars}/*"]
        form = [*java, "kafka.tools.StorageTool", "format", "--cluster-id", "dG9wc2FpbC13aW5lcy0wMQ", "--config", properties]
        subprocess.run(form, check=True, capture_output=True)
        return [*java, "kafka.Kafka", properties]


BROKERS = {"redis": Redis, "kafka": Kafka}


@contextmanager
def started(kind, folder, *more):
    """A broker of one's own in a folder, and its address."""
    folder.mkdir()
    port = free_port()
    command = BROKERS[kind].command(folder, port, *more)
    with Path(folder, "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            wait_for(port, server, log.name)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def wait_for(port, server, log):
    for _ in range(600):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit(f"the server did not start: see {log}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
