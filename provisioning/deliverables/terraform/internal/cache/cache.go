// Package cache keeps lists that Terraform would otherwise read item by item.
//
// A run of Terraform asks for every resource by itself. The first that is asked for reads the whole
// list that it is in; the others are found there. Own writes keep the list current, so it says what
// the service would for as long as nobody else changes anything: the length of one walk.
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

// scope is one list. Its lock is held while it is loaded, so that one call serves all who wait and
// a write that ends meanwhile is put into what was loaded, not under it.
type scope[T any] struct {
	mu     sync.Mutex
	loaded bool
	err    error
	items  map[string]T
}

// New makes a cache. load reads a scope's list, key gives what an item is found by, and final tells
// of which errors nothing else is to be expected in this run (the scope is gone): they are kept.
func New[T any](
	load func(context.Context, string) ([]T, error),
	key func(T) string,
	final func(error) bool,
) *Lists[T] {
	return &Lists[T]{load: load, key: key, final: final, scopes: map[string]*scope[T]{}}
}

// Find gives the item with a key, and whether it is there.
func (l *Lists[T]) Find(ctx context.Context, name, key string) (item T, found bool, err error) {
	err = l.in(ctx, name, func(items map[string]T) { item, found = items[key] })
	return item, found, err
}

// All gives the items of a scope, in the order of their keys.
func (l *Lists[T]) All(ctx context.Context, name string) (all []T, err error) {
	err = l.in(ctx, name, func(items map[string]T) {
		for _, key := range slices.Sorted(maps.Keys(items)) {
			all = append(all, items[key])
		}
	})
	return all, err
}

// Put notes what was just written. A list that was never read is left to be read.
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

// Remove notes what was just deleted.
func (l *Lists[T]) Remove(name, key string) {
	held := l.scope(name)
	held.mu.Lock()
	defer held.mu.Unlock()
	delete(held.items, key)
}

// Forget has a list read anew when it is needed next.
func (l *Lists[T]) Forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.scopes, name)
}

// in calls use with a scope's items, after they are loaded, under the scope's lock.
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
		err = fmt.Errorf("list what is in %s: %w", name, err)
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
	held, there := l.scopes[name]
	if !there {
		held = &scope[T]{}
		l.scopes[name] = held
	}
	return held
}
