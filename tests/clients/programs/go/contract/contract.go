// Package contract runs a client's program: it reads the arguments that all programs of
// tests/clients/programs have, does the step that they name, and prints one line of JSON.
package contract

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// limit is never reached when all is well.
const limit = 60 * time.Second

// Record is a record of the topic's only partition. Timestamp is in ms since 1970.
type Record struct {
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"`
	Key       string `json:"key"`
	Value     string `json:"value"`
}

// Client does what the scenario asks by the calls of one library.
type Client interface {
	// Produce sends the batches, each as one batch of the log, and returns the offsets of all records.
	Produce(ctx context.Context, codec string, batches [][]Record) ([]int64, error)
	// OffsetAt returns the offset of the first record at or after a time in ms since 1970, or what
	// the library returns where there is none.
	OffsetAt(ctx context.Context, ms int64) (int64, error)
	// Reset moves the group to the first record at or after a time and reads so many records.
	Reset(ctx context.Context, group string, ms int64, count int) ([]Record, error)
}

// details are what the steps need beyond bootstrap address and topic.
type details struct {
	Codec   string     `json:"codec"`
	Batches [][]Record `json:"batches"`
	Times   []int64    `json:"times"`
	Group   string     `json:"group"`
	Time    int64      `json:"time"`
	Count   int        `json:"count"`
}

// Main does one step: the arguments are the bootstrap address, the topic, the step and its details.
// It ends the process with status 1 and a line on standard error if the library returns an error.
func Main(connect func(bootstrap, topic string) (Client, error)) {
	answer, err := run(connect, os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(
	connect func(bootstrap, topic string) (Client, error), arguments []string,
) (map[string]any, error) {
	if len(arguments) != 4 {
		return nil, fmt.Errorf("arguments: BOOTSTRAP TOPIC produce|offsets|reset DETAILS")
	}
	var given details
	if err := json.Unmarshal([]byte(arguments[3]), &given); err != nil {
		return nil, err
	}
	client, err := connect(arguments[0], arguments[1])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	switch step := arguments[2]; step {
	case "produce":
		offsets, err := client.Produce(ctx, given.Codec, given.Batches)
		return map[string]any{"offsets": offsets}, err
	case "offsets":
		offsets := make([]int64, 0, len(given.Times))
		for _, ms := range given.Times {
			offset, err := client.OffsetAt(ctx, ms)
			if err != nil {
				return nil, err
			}
			offsets = append(offsets, offset)
		}
		return map[string]any{"offsets": offsets}, nil
	case "reset":
		records, err := client.Reset(ctx, given.Group, given.Time, given.Count)
		return map[string]any{"records": records}, err
	default:
		return nil, fmt.Errorf("there is no step %s", step)
	}
}
