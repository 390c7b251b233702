package batch

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const never = time.Hour

func doubled(_ context.Context, _ string, items []int) []Result[int] {
	results := make([]Result[int], len(items))
	for i, item := range items {
		results[i].Value = 2 * item
	}
	return results
}

func TestAFullBatchIsSentAtOnce(t *testing.T) {
	var sent atomic.Int64
	batcher := New(never, 10, func(ctx context.Context, scope string, items []int) []Result[int] {
		sent.Add(1)
		if len(items) != 10 || scope != "x" {
			t.Errorf("%d items of %s", len(items), scope)
		}
		return doubled(ctx, scope, items)
	})
	var asking sync.WaitGroup
	for i := range 40 {
		asking.Go(func() {
			if value, err := batcher.Do(t.Context(), "x", i); value != 2*i || err != nil {
				t.Errorf("%d became %d, %v", i, value, err)
			}
		})
	}
	asking.Wait()
	if sent.Load() != 4 {
		t.Errorf("%d batches", sent.Load())
	}
}

func TestAnItemAloneIsSentAfterTheWindow(t *testing.T) {
	batcher := New(time.Millisecond, 10, doubled)
	for _, scope := range []string{"x", "y", "x"} {
		if value, err := batcher.Do(t.Context(), scope, 4); value != 8 || err != nil {
			t.Errorf("%d, %v", value, err)
		}
	}
}

func TestEachItemHasItsOwnResult(t *testing.T) {
	wrong := errors.New("wrong")
	batcher := New(never, 2, func(_ context.Context, _ string, items []int) []Result[int] {
		results := make([]Result[int], len(items))
		for i, item := range items {
			if item == 1 {
				results[i].Err = wrong
			}
		}
		return results
	})
	var asking sync.WaitGroup
	for i := range 2 {
		asking.Go(func() {
			if _, err := batcher.Do(t.Context(), "x", i); errors.Is(err, wrong) != (i == 1) {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	asking.Wait()
}

func TestTheRequestLivesAsLongAsSomebodyWaits(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	batcher := New(never, 2, func(ctx context.Context, _ string, items []int) []Result[int] {
		close(begun)
		<-goOn
		if ctx.Err() != nil {
			t.Error("one who left ended it for the other")
		}
		return doubled(ctx, "", items)
	})
	leaving, leave := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		if value, err := batcher.Do(t.Context(), "x", 2); value != 4 || err != nil {
			t.Errorf("%d, %v", value, err)
		}
	})
	left := make(chan error)
	go func() {
		_, err := batcher.Do(leaving, "x", 1)
		left <- err
	}()
	<-begun
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(goOn)
	asking.Wait()
}

func TestARequestThatNobodyWaitsForEnds(t *testing.T) {
	ended := make(chan struct{})
	batcher := New(0, 10, func(ctx context.Context, _ string, items []int) []Result[int] {
		<-ctx.Done()
		close(ended)
		return make([]Result[int], len(items))
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := batcher.Do(ctx, "x", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended
}
