"""A client with TLS: `python -m tests.gateway.tls_client LIBRARY BOOTSTRAP AUTHORITY TOPIC`.

Produces one record and prints what it then reads. Run where the names resolve.
"""

from __future__ import annotations

import sys

import confluent_kafka
import kafka

from tests.gateway.cells import PASSWORD, USER

TIMEOUT_S = 60


def librdkafka(bootstrap: str, authority: str, topic: str) -> str:
    """By confluent-kafka, with SCRAM."""
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": authority,
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"by librdkafka")
    assert producer.flush(TIMEOUT_S) == 0
    reading = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, **reading})
    consumer.subscribe([topic])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.error() is None
    value = (message.value() or b"").decode()
    consumer.close()
    return value


def kafka_python(bootstrap: str, authority: str, topic: str) -> str:
    """By kafka-python, with PLAIN."""
    settings = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": authority,
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD,
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"by kafka-python").get(TIMEOUT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic,
        auto_offset_reset="earliest",
        group_id=topic,
        consumer_timeout_ms=TIMEOUT_S * 1000,
        **settings,
    )
    value: bytes = next(consumer).value
    consumer.close()
    return value.decode()


LIBRARIES = {"librdkafka": librdkafka, "kafka-python": kafka_python}

if __name__ == "__main__":
    sys.stdout.write(LIBRARIES[sys.argv[1]](*sys.argv[2:]))
