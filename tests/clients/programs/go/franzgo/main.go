// Command franzgo is the scenario of tests/clients/by_time by franz-go.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"freshet/clients/contract"
)

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

type client struct{ bootstrap, topic string }

func main() {
	contract.Main(func(bootstrap, topic string) (contract.Client, error) {
		return client{bootstrap, topic}, nil
	})
}

func (c client) open(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(options, kgo.SeedBrokers(c.bootstrap))...)
}

func (c client) Produce(
	ctx context.Context, codec string, batches [][]contract.Record,
) ([]int64, error) {
	producer, err := c.open(
		kgo.DefaultProduceTopic(c.topic),
		kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ManualFlushing(), // all records before a flush in one batch
	)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	var offsets []int64
	for _, batch := range batches {
		var failure error
		for _, record := range batch {
			producer.Produce(ctx, &kgo.Record{
				Key:       []byte(record.Key),
				Value:     []byte(record.Value),
				Timestamp: time.UnixMilli(record.Timestamp),
			}, func(sent *kgo.Record, err error) {
				offsets = append(offsets, sent.Offset)
				if err != nil {
					failure = err
				}
			})
		}
		if err := producer.Flush(ctx); err != nil {
			return nil, err
		}
		if failure != nil {
			return nil, failure
		}
	}
	return offsets, nil
}

func (c client) OffsetAt(ctx context.Context, ms int64) (int64, error) {
	connection, err := c.open()
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	listed, err := kadm.NewClient(connection).ListOffsetsAfterMilli(ctx, ms, c.topic)
	if err != nil {
		return 0, err
	}
	offset, exists := listed.Lookup(c.topic, 0)
	if !exists {
		return 0, fmt.Errorf("no offset of %s", c.topic)
	}
	return offset.Offset, offset.Err
}

func (c client) Reset(
	ctx context.Context, group string, ms int64, count int,
) ([]contract.Record, error) {
	at := kgo.NewOffset().AfterMilli(ms)
	consumer, err := c.open(
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(c.topic),
		kgo.ConsumeStartOffset(at),
		kgo.ConsumeResetOffset(at),
	)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	var records []contract.Record
	for len(records) < count {
		fetches := consumer.PollRecords(ctx, count-len(records))
		if err := fetches.Err(); err != nil {
			return nil, fmt.Errorf("%d of %d records: %w", len(records), count, err)
		}
		for _, record := range fetches.Records() {
			records = append(records, contract.Record{
				Offset:    record.Offset,
				Timestamp: record.Timestamp.UnixMilli(),
				Key:       string(record.Key),
				Value:     string(record.Value),
			})
		}
	}
	return records, nil
}
