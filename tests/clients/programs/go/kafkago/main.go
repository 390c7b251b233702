// Command kafkago is the scenario of tests/clients/by_time by kafka-go.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"freshet/clients/contract"
)

var codecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

type client struct{ bootstrap, topic string }

func main() {
	contract.Main(func(bootstrap, topic string) (contract.Client, error) {
		return client{bootstrap, topic}, nil
	})
}

func (c client) Produce(
	ctx context.Context, codec string, batches [][]contract.Record,
) ([]int64, error) {
	var offsets []int64
	for _, batch := range batches {
		sent, err := c.send(ctx, codecs[codec], batch)
		if err != nil {
			return nil, err
		}
		offsets = append(offsets, sent...)
	}
	return offsets, nil
}

func (c client) send(
	ctx context.Context, codec kafka.Compression, batch []contract.Record,
) ([]int64, error) {
	var offsets []int64
	writer := kafka.Writer{
		Addr:         kafka.TCP(c.bootstrap),
		Topic:        c.topic,
		Compression:  codec,
		RequiredAcks: kafka.RequireAll,
		BatchSize:    len(batch), // all in one batch
		Completion: func(messages []kafka.Message, _ error) {
			for _, message := range messages {
				offsets = append(offsets, message.Offset)
			}
		},
	}
	messages := make([]kafka.Message, 0, len(batch))
	for _, record := range batch {
		messages = append(messages, kafka.Message{
			Key:   []byte(record.Key),
			Value: []byte(record.Value),
			Time:  time.UnixMilli(record.Timestamp),
		})
	}
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		return nil, err
	}
	return offsets, writer.Close()
}

func (c client) OffsetAt(ctx context.Context, ms int64) (int64, error) {
	connection, err := kafka.DialLeader(ctx, "tcp", c.bootstrap, c.topic, 0)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	return connection.ReadOffset(time.UnixMilli(ms))
}

func (c client) Reset(
	ctx context.Context, group string, ms int64, count int,
) ([]contract.Record, error) {
	consumers, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:      group,
		Brokers: []string{c.bootstrap},
		Topics:  []string{c.topic},
	})
	if err != nil {
		return nil, err
	}
	generation, err := consumers.Next(ctx)
	if err != nil {
		return nil, err
	}
	assigned := generation.Assignments[c.topic]
	if len(assigned) != 1 {
		return nil, fmt.Errorf("assigned: %v", generation.Assignments)
	}
	// A reader that has a group of its own refuses a time.
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{c.bootstrap},
		Topic:     c.topic,
		Partition: assigned[0].ID,
		MaxWait:   time.Second,
	})
	if err := reader.SetOffsetAt(ctx, time.UnixMilli(ms)); err != nil {
		return nil, err
	}
	var records []contract.Record
	for len(records) < count {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(records), count, err)
		}
		records = append(records, contract.Record{
			Offset:    message.Offset,
			Timestamp: message.Time.UnixMilli(),
			Key:       string(message.Key),
			Value:     string(message.Value),
		})
	}
	committed := map[string]map[int]int64{c.topic: {assigned[0].ID: reader.Offset()}}
	if err := generation.CommitOffsets(committed); err != nil {
		return nil, err
	}
	if err := reader.Close(); err != nil {
		return nil, err
	}
	return records, consumers.Close()
}
