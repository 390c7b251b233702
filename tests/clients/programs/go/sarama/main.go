// Command sarama is the scenario of tests/clients/by_time by Sarama.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"freshet/clients/contract"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

type client struct {
	bootstrap []string
	topic     string
}

func main() {
	contract.Main(func(bootstrap, topic string) (contract.Client, error) {
		return client{[]string{bootstrap}, topic}, nil
	})
}

func (c client) Produce(
	_ context.Context, codec string, batches [][]contract.Record,
) ([]int64, error) {
	var offsets []int64
	for _, batch := range batches {
		config := sarama.NewConfig()
		config.Producer.Return.Successes = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Producer.Compression = codecs[codec]
		config.Producer.Flush.Messages = len(batch) // all in one batch
		sent, err := send(c.bootstrap, c.topic, config, batch)
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, sent...)
	}
	return offsets, nil
}

func send(
	bootstrap []string, topic string, config *sarama.Config, batch []contract.Record,
) ([]int64, error) {
	producer, err := sarama.NewSyncProducer(bootstrap, config)
	if err != nil {
		return nil, err
	}
	messages := make([]*sarama.ProducerMessage, 0, len(batch))
	for _, record := range batch {
		messages = append(messages, &sarama.ProducerMessage{
			Topic:     topic,
			Key:       sarama.StringEncoder(record.Key),
			Value:     sarama.StringEncoder(record.Value),
			Timestamp: time.UnixMilli(record.Timestamp),
		})
	}
	if err := producer.SendMessages(messages); err != nil {
		return nil, err
	}
	offsets := make([]int64, 0, len(messages))
	for _, message := range messages {
		offsets = append(offsets, message.Offset)
	}
	return offsets, producer.Close()
}

func (c client) OffsetAt(_ context.Context, ms int64) (int64, error) {
	connection, err := sarama.NewClient(c.bootstrap, sarama.NewConfig())
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	return connection.GetOffset(c.topic, 0, ms)
}

func (c client) Reset(
	ctx context.Context, group string, ms int64, count int,
) ([]contract.Record, error) {
	consumers, err := sarama.NewConsumerGroup(c.bootstrap, group, sarama.NewConfig())
	if err != nil {
		return nil, err
	}
	offset, err := c.OffsetAt(ctx, ms)
	if err != nil {
		return nil, err
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	reader := &reader{topic: c.topic, offset: offset, count: count, stop: stop}
	for reading.Err() == nil {
		if err := consumers.Consume(reading, []string{c.topic}, reader); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%d of %d records after the offset %d: %w",
			len(reader.records), count, offset, ctx.Err())
	}
	return reader.records, consumers.Close()
}

// reader takes `count` records from `offset` on, which it commits for the group at its start.
type reader struct {
	topic   string
	offset  int64
	count   int
	stop    func()
	records []contract.Record
}

func (r *reader) Setup(session sarama.ConsumerGroupSession) error {
	// Each of the two moves in one direction only.
	session.MarkOffset(r.topic, 0, r.offset, "")
	session.ResetOffset(r.topic, 0, r.offset, "")
	return nil
}

func (r *reader) ConsumeClaim(
	_ sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim,
) error {
	for message := range claim.Messages() {
		r.records = append(r.records, contract.Record{
			Offset:    message.Offset,
			Timestamp: message.Timestamp.UnixMilli(),
			Key:       string(message.Key),
			Value:     string(message.Value),
		})
		if len(r.records) == r.count {
			r.stop()
			break
		}
	}
	return nil
}

func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
