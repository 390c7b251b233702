// Package cache keeps lists that Terraform would otherwise read item by item.
//
// A run of Terraform reads every resource with a call of its own. The first call reads the whole
// list that the resource is in; the others find theirs in it. The provider's own writes are put
// into the list, so for the short time of one walk, while nobody else changes anything, it is what
// the service would answer.
package cache

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Lists holds lists of one kind of thing, one for each scope (a cluster's id). The zero value is
// not usable; see New.
type Lists[T any] struct {
	load  func(context.Context, string) ([]T, error)
	key   func(T) string
	final func(error) bool

	mu     sync.Mutex
	scopes map[string]*scope[T]
}

// scope is one list. Its lock is held while it is loaded, so that one call serves all who wait, and
// that a write which ends meanwhile is put into the loaded list and not overwritten by it.
type scope[T any] struct {
	mu     sync.Mutex
	loaded bool
	err    error
	items  map[string]T
}

// New makes a cache. load reads the list of a scope, key returns what an item is looked up by, and
// final says which errors are kept because this run can expect nothing else (the scope does not
// exist).
func New[T any](
	load func(context.Context, string) ([]T, error),
	key func(T) string,
	final func(error) bool,
) *Lists[T] {
	return &Lists[T]{load: load, key: key, final: final, scopes: map[string]*scope[T]{}}
}

// Find returns the item with a key, and whether it exists.
func (l *Lists[T]) Find(ctx context.Context, name, key string) (item T, exists bool, err error) {
	err = l.in(ctx, name, func(items map[string]T) { item, exists = items[key] })
	return item, exists, err
}

// All returns the items of a scope, in the order of their keys.
func (l *Lists[T]) All(ctx context.Context, name string) (all []T, err error) {
	err = l.in(ctx, name, func(items map[string]T) {
		for _, key := range slices.Sorted(maps.Keys(items)) {
			all = append(all, items[key])
		}
	})
	return all, err
}

// Put notes items that were just written. A list that was never read is left alone, to be read
// later.
func (l *Lists[T]) Put(name string, items ...T) {
	held := l.scope(name)
	held.mu.Lock()
	defer held.mu.Unlock()
	if !held.loaded || held.err != nil {
		return
	}
	for _, item := range items {
		held.items[l.key(item)] = item
	}
}

// Remove notes that an item was just deleted.
func (l *Lists[T]) Remove(name, key string) {
	held := l.scope(name)
	held.mu.Lock()
	defer held.mu.Unlock()
	delete(held.items, key)
}

// Forget drops a list, so that it is read anew when it is needed next.
func (l *Lists[T]) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.scopes, name)
}

// in loads a scope's items where that was not done yet, and calls use with them under its lock.
func (l *Lists[T]) in(ctx context.Context, name string, use func(map[string]T)) error {
	held := l.scope(name)
	held.mu.Lock()
	defer held.mu.Unlock()
	if !held.loaded {
		if err := l.fill(ctx, name, held); err != nil {
			return err
		}
	}
	if held.err != nil {
		return held.err
	}
	use(held.items)
	return nil
}

func (l *Lists[T]) fill(ctx context.Context, name string, held *scope[T]) error {
	items, err := l.load(ctx, name)
	if err != nil {
		err = fmt.Errorf("read the list in %s: %w", name, err)
		held.loaded = l.final(err)
		held.err = err
		return err
	}
	held.items = make(map[string]T, len(items))
	for _, item := range items {
		held.items[l.key(item)] = item
	}
	held.loaded, held.err = true, nil
	return nil
}

func (l *Lists[T]) scope(name string) *scope[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, exists := l.scopes[name]
	if !exists {
		held = &scope[T]{}
		l.scopes[name] = held
	}
	return held
}
