// Package batch joins requests of several goroutines into one.
//
// Terraform creates every resource with a call of its own, ten at a time. Items for the same
// cluster that come within a short time are sent in one request.
package batch

import (
	"context"
	"sync"
	"time"
)

// Result is the outcome of one item of a batch.
type Result[Out any] struct {
	Value Out
	Err   error
}

// Batcher collects items by scope (a cluster's id). See New.
type Batcher[In, Out any] struct {
	send   func(context.Context, string, []In) []Result[Out]
	window time.Duration
	most   int

	mu      sync.Mutex
	pending map[string]*pending[In, Out]
}

// pending is a batch that is still open.
type pending[In, Out any] struct {
	items   []In
	done    chan struct{}
	results []Result[Out]
	timer   *time.Timer
	// The timer may fire while the last item joins; the batch is sent once all the same.
	once sync.Once

	ctx     context.Context
	cancel  context.CancelFunc
	waiting int // callers that still want an answer
}

// New makes a batcher. A batch is sent when window is over after its first item, or as soon as it
// has most items. send returns one result for each item, in order.
func New[In, Out any](
	window time.Duration,
	most int,
	send func(context.Context, string, []In) []Result[Out],
) *Batcher[In, Out] {
	return &Batcher[In, Out]{
		send: send, window: window, most: most, pending: map[string]*pending[In, Out]{},
	}
}

// Do sends an item with others of its scope and returns its result. The request is cancelled when
// no caller waits for it any more.
func (b *Batcher[In, Out]) Do(ctx context.Context, scope string, item In) (Out, error) {
	batch, place := b.join(ctx, scope, item)
	select {
	case <-batch.done:
		result := batch.results[place]
		return result.Value, result.Err
	case <-ctx.Done():
		b.leave(batch)
		var none Out
		return none, ctx.Err()
	}
}

func (b *Batcher[In, Out]) join(
	ctx context.Context, scope string, item In,
) (*pending[In, Out], int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch, open := b.pending[scope]
	if !open {
		batch = &pending[In, Out]{done: make(chan struct{})}
		// The values of the first caller's context (its log) serve the batch; its end does not end
		// it.
		batch.ctx, batch.cancel = context.WithCancel(context.WithoutCancel(ctx))
		batch.timer = time.AfterFunc(b.window, func() {
			batch.once.Do(func() { b.flush(scope, batch) })
		})
		b.pending[scope] = batch
	}
	batch.items = append(batch.items, item)
	batch.waiting++
	if len(batch.items) == b.most {
		// The batch is full, so the next item begins another.
		delete(b.pending, scope)
		batch.timer.Reset(0)
	}
	return batch, len(batch.items) - 1
}

func (b *Batcher[In, Out]) leave(batch *pending[In, Out]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if batch.waiting--; batch.waiting == 0 {
		batch.cancel()
	}
}

func (b *Batcher[In, Out]) flush(scope string, batch *pending[In, Out]) {
	b.mu.Lock()
	if b.pending[scope] == batch {
		delete(b.pending, scope)
	}
	b.mu.Unlock()
	defer batch.cancel()
	batch.results = b.send(batch.ctx, scope, batch.items)
	close(batch.done)
}

// AllOrEach sends items with one request. Where the service refuses it, every item is sent alone,
// so that a wrong item does not stop the others. send returns the outcomes of its items, in order.
func AllOrEach[In, Out any](
	items []In, send func([]In) ([]Out, error), refused func(error) bool,
) []Result[Out] {
	results := make([]Result[Out], len(items))
	outcomes, err := send(items)
	for i := range results {
		switch {
		case err == nil:
			results[i].Value = outcomes[i]
		case len(items) > 1 && refused(err):
			results[i] = AllOrEach(items[i:i+1], send, refused)[0]
		default:
			results[i].Err = err
		}
	}
	return results
}
