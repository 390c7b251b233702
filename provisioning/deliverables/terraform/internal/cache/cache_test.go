package cache

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var errGone = errors.New("gone")

func counted(loads *atomic.Int64, items []string, fail *error) *Lists[string] {
	return New(
		func(context.Context, string) ([]string, error) {
			loads.Add(1)
			if fail != nil && *fail != nil {
				return nil, *fail
			}
			return items, nil
		},
		func(item string) string { return item },
		func(err error) bool { return errors.Is(err, errGone) },
	)
}

func TestOneLoadServesAllWhoAskAtOnce(t *testing.T) {
	var loads atomic.Int64
	lists := counted(&loads, []string{"b", "a"}, nil)
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			if item, exists, err := lists.Find(t.Context(), "x", "a"); item != "a" || !exists || err != nil {
				t.Errorf("%q %v %v", item, exists, err)
			}
		})
	}
	asking.Wait()
	if loads.Load() != 1 {
		t.Errorf("%d loads", loads.Load())
	}
	if all, _ := lists.All(t.Context(), "x"); !slices.Equal(all, []string{"a", "b"}) {
		t.Errorf("%v", all)
	}
	if _, exists, _ := lists.Find(t.Context(), "y", "c"); exists || loads.Load() != 2 {
		t.Errorf("another scope: exists %v after %d loads", exists, loads.Load())
	}
}

func TestOwnWritesAreFollowed(t *testing.T) {
	var loads atomic.Int64
	lists := counted(&loads, []string{"a"}, nil)
	lists.Put("x", "before") // nothing was read: the list will have it
	if _, exists, _ := lists.Find(t.Context(), "x", "before"); exists {
		t.Error("a list that was never read was written to")
	}
	lists.Put("x", "b", "c")
	lists.Remove("x", "a")
	lists.Remove("never read", "a")
	if all, _ := lists.All(t.Context(), "x"); !slices.Equal(all, []string{"b", "c"}) {
		t.Errorf("%v", all)
	}
	lists.Forget("x")
	if all, _ := lists.All(t.Context(), "x"); !slices.Equal(all, []string{"a"}) {
		t.Errorf("%v", all)
	}
}

func TestAWriteDuringTheLoadIsKept(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	lists := New(
		func(context.Context, string) ([]string, error) {
			close(begun)
			<-goOn
			return []string{"a"}, nil
		},
		func(item string) string { return item },
		func(error) bool { return false },
	)
	var both sync.WaitGroup
	both.Go(func() { _, _ = lists.All(context.Background(), "x") })
	<-begun
	both.Go(func() { lists.Put("x", "b") })
	close(goOn)
	both.Wait()
	if all, _ := lists.All(t.Context(), "x"); !slices.Equal(all, []string{"a", "b"}) {
		t.Errorf("%v", all)
	}
}

func TestOnlyAFinalErrorIsKept(t *testing.T) {
	var loads atomic.Int64
	fail := errors.New("try again")
	lists := counted(&loads, []string{"a"}, &fail)
	for range 2 {
		if _, _, err := lists.Find(t.Context(), "x", "a"); !errors.Is(err, fail) {
			t.Errorf("got %v", err)
		}
	}
	if loads.Load() != 2 {
		t.Errorf("%d loads", loads.Load())
	}
	fail = errGone
	for range 3 {
		if _, err := lists.All(t.Context(), "x"); !errors.Is(err, errGone) {
			t.Errorf("got %v", err)
		}
	}
	lists.Put("x", "b")
	if loads.Load() != 3 {
		t.Errorf("%d loads", loads.Load())
	}
}
